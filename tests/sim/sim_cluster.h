// What joins the nodes of a simulation: a PeerNet whose messages and pages take time and come in
// any order but that of one feed. And what goes wrong with nodes and between them, when told.
//
// A fault of the network is a window: while it is open, one in so many messages or pages is hit.
// One thread.
#ifndef PANDO_TESTS_SIM_SIM_CLUSTER_H_
#define PANDO_TESTS_SIM_SIM_CLUSTER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cluster/peer_net.h"
#include "tests/sim/faults.h"
#include "tests/sim/sim_node.h"

namespace pando::sim {

class SimCluster {
 public:
  struct Options {
    uint64_t seed = 1;
    bool collide = false;  // all keys of the trees are equal
    uint64_t delay = 1;    // units: of a message between nodes, at most
    bool late_extents = false;
  };
  SimCluster(const Options& options, EventQueue* events)
      : options_(options), events_(events), random_(options.seed) {}

  void Add(SimNode* node, uint32_t extents);
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  // All have been added: they begin their first lives.
  void Start();

  // ---- Faults; false: it cannot be done to that node now.
  bool Crash(uint32_t node, Nanos away);
  bool Drain(uint32_t node, Nanos ends, Nanos away);
  bool Stall(uint32_t node, Nanos time);
  bool Jump(uint32_t node, Nanos by);
  bool Freeze(uint32_t node, Nanos time);
  void Part(uint32_t a, uint32_t b, Nanos time);
  void Reset(uint32_t a, uint32_t b);
  void Open(Fault fault, Nanos time, uint64_t one_in);

  // No fault from now on; what was parted is joined, what is down starts.
  void Heal();
  void Stop() { stopped_ = true; }

  // After quiet: whether each node's view of each other is what that one holds.
  void CheckConverged(Checker* checker) const;

 private:
  struct Window {
    Nanos until = 0;
    uint64_t one_in = 1;
  };

  void Begin(uint32_t node);
  void AddExtents(uint32_t node);
  bool Hits(Fault fault);
  testing::PeerNet::Way WayOf();
  bool Change(PeerAnswerBody* answer);
  bool Change(SendFeed* feed);
  LoopbackFate Fate(LoopbackMessage kind);
  void Pump();
  void PumpBy(Nanos time);

  const Options options_;
  EventQueue* events_;
  Random random_;
  testing::PeerNet net_;
  std::vector<SimNode*> nodes_;
  std::vector<uint32_t> extents_;
  std::array<Window, kFaults> windows_{};
  Nanos pump_at_ = INT64_MAX;
  bool healed_ = false, stopped_ = false;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIM_CLUSTER_H_
