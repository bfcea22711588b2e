// One host's node: real NodeCores, one a life, behind simulated sockets. Messages and answers take
// time, keep their order within a session, and are lost when its socket ends. What is for peers
// goes to `carry`; pages that peers pull or are pulled from are watched.
//
// Checked at every step: each message is answered in the step that takes it, an await by its
// deadline, no message twice; each peer's question in its step; each offer and pull ends once.
// One thread.
#ifndef PANDO_TESTS_SIM_SIM_NODE_H_
#define PANDO_TESTS_SIM_SIM_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "node/core/node_core.h"
#include "tests/sim/checker.h"
#include "tests/sim/clock.h"
#include "tests/sim/coverage.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/page_memory.h"
#include "tests/sim/random.h"

namespace pando::sim {

class SimNode {
 public:
  using OnAnswer = std::function<void(const Answer&)>;
  struct Options {
    uint64_t seed = 1;
    uint32_t extents = 24;
    uint32_t extent_pages_max = 0;  // 0: all
    bool collide = false;           // every key of the tree is equal
    uint64_t check_every = 1;       // steps between two self-checks
    uint64_t delay = 30;            // of a message, at most, but for one in twenty
    Nanos ahead = 0;                // its clock
  };
  // Of all its lives.
  struct Sums {
    uint64_t pages_fetched = 0, pages_bad = 0, feeds_broken = 0, hit_peer = 0;
  };

  SimNode(const Options& options, EventQueue* events, Checker* checker, Coverage* coverage);

  // Begins a life, with none of its slab yet.
  void Start();
  // Ends it: its sockets end, nothing of it goes on, and `on_crash` are told.
  void Crash();
  bool up() const { return life_ != nullptr; }
  void AddExtent(ExtentId extent) { Step(ExtentReady{extent}); }
  void AddExtentAt(Nanos time, ExtentId extent) {
    At(time, [this, extent] { AddExtent(extent); });
  }
  void Drain() { Step(DrainRequested{}); }
  std::vector<std::function<void()>> on_crash;

  // Nothing is done for so long, then all that has come.
  void Stall(Nanos time);
  // Its clock jumps, or stands still for so long and jumps then.
  void Jump(Nanos by);
  void Freeze(Nanos time);
  // It goes on, and its clock with it.
  void Thaw();
  Nanos Now() const { return clock_.At(events_->now()); }
  // By its clock, so many units from now.
  Nanos In(uint64_t delay) const { return clock_.At(events_->In(delay)); }

  // Takes the outputs that are for peers, with deadlines in simulated time; none: it is alone.
  std::function<void(Output)> carry;
  void FromPeers(Input input);
  // Of this life; it must be up.
  const std::shared_ptr<PageMemory>& memory() const { return life_->memory; }

  // It must be up.
  SessionId Open();
  // `on_answer` is called only if the answer reaches the process.
  void Send(SessionId session, RequestBody body, Nanos deadline, OnAnswer on_answer);
  void Close(SessionId session);
  void Exit(SessionId session) { Step(ProcessExited{session}); }
  bool open(SessionId session) const { return up() && life_->wires.contains(session); }

  // Of this life; it must be up.
  const NodeCore& core() const { return life_->core; }
  uint64_t steps() const { return steps_; }
  Sums sums() const;

 private:
  struct Wire {
    Nanos last_in = 0, last_out = 0;  // order is kept
    std::map<uint64_t, OnAnswer> waiting;
  };
  struct Await {
    Nanos until = 0;
    SessionId session;
    uint64_t serial = 0;
    friend auto operator<=>(const Await&, const Await&) = default;
  };
  struct Life {
    Life(const NodeCore::Options& options, Coverage* coverage, Checker* checker)
        : core(options, coverage), memory(std::make_shared<PageMemory>(checker)) {}

    NodeCore core;
    std::shared_ptr<PageMemory> memory;
    std::map<std::pair<uint64_t, uint64_t>, PageMemory::Accessor> offered;  // by grant
    std::map<uint64_t, std::vector<PageMemory::Accessor>> pulled;           // by pull, by position
    std::map<SessionId, Wire> wires;
    std::set<Await> awaits;  // not answered
  };
  // What a step owes.
  struct Owed {
    std::optional<std::pair<SessionId, uint64_t>> answer;
    std::optional<uint64_t> peer_answer;
  };

  NodeCore::Options CoreOptions();
  void Step(Input input);
  void Do(Input input);
  void Take(Output output, Owed* owed);
  Owed Expect(const Input& input);
  void CheckPaid(const Owed& owed);
  void SelfCheck();
  void Deliver(const SendAnswer& send);
  void Watch(const Output& output);
  void Watch(const TransferEvent& event);
  void ToSimulatedTime(Output* output) const;
  void ScheduleTick();
  // Runs it if this life still is.
  void At(Nanos time, std::function<void()> run);
  uint64_t Delay();

  const Options options_;
  EventQueue* events_;
  Random random_;
  Checker* checker_;
  Coverage* coverage_;
  Clock clock_;
  std::unique_ptr<Life> life_;
  std::vector<Input> inbox_;  // while stalled
  Nanos stalled_until_ = 0;
  Sums past_;  // of lives that are over
  uint64_t lives_ = 0, last_session_ = 0, last_serial_ = 0, steps_ = 0;
  Nanos tick_at_ = INT64_MAX;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIM_NODE_H_
