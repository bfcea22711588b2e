// One node: a real NodeCore behind simulated sockets. Messages and answers take time, keep their
// order within a session, and are lost when its socket ends. What is for peers goes to `carry`;
// pages that peers pull or are pulled from are watched. One thread.
#ifndef PANDO_TESTS_SIM_SIM_NODE_H_
#define PANDO_TESTS_SIM_SIM_NODE_H_

#include <cstdint>
#include <functional>
#include <map>

#include "node/core/node_core.h"
#include "tests/sim/checker.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/page_memory.h"
#include "tests/sim/random.h"

namespace pando::sim {

class SimNode {
 public:
  using OnAnswer = std::function<void(const Answer&)>;
  struct Options {
    uint32_t extents = 24;
    bool collide = false;      // every key of the tree is equal
    uint64_t check_every = 1;  // steps between two self-checks
  };

  SimNode(const Options& options, EventQueue* events, Random* random, Checker* checker);

  // Takes the outputs that are for peers; none: the node is alone.
  std::function<void(Output)> carry;
  void FromPeers(Input input);
  // Its slab is there.
  void AddExtents();
  PageMemory& memory() { return memory_; }

  SessionId Open();
  // `on_answer` is called only if the answer reaches the process.
  void Send(SessionId session, RequestBody body, Nanos deadline, OnAnswer on_answer);
  void Close(SessionId session);
  void Exit(SessionId session);
  bool open(SessionId session) const { return wires_.contains(session); }

  const NodeCore& core() const { return core_; }
  uint64_t steps() const { return steps_; }

 private:
  struct Wire {
    Nanos last_in = 0, last_out = 0;  // order is kept
    std::map<uint64_t, OnAnswer> waiting;
  };

  void Step(Input input);
  void Deliver(const SendAnswer& send);
  void Watch(const Output& output);
  void Watch(const TransferEvent& event);
  void ScheduleTick();
  uint64_t Delay() { return random_->OneIn(20) ? random_->Below(3000) : random_->Below(30); }

  EventQueue* events_;
  Random* random_;
  Checker* checker_;
  NodeCore core_;
  PageMemory memory_;
  std::map<std::pair<uint64_t, uint64_t>, PageMemory::Accessor> offered_;  // by grant
  std::map<uint64_t, std::vector<PageMemory::Accessor>> pulled_;           // by pull, by position
  const uint32_t extents_;
  uint64_t check_every_;
  std::map<SessionId, Wire> wires_;
  uint64_t last_session_ = 0, last_serial_ = 0, steps_ = 0;
  Nanos tick_at_ = INT64_MAX;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIM_NODE_H_
