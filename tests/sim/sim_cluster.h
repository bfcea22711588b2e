// What joins the nodes of a simulation: a PeerNet whose messages and pages take time, come in any
// order but that of one connection, are cut off by partitions, lost, and changed. One thread.
#ifndef PANDO_TESTS_SIM_SIM_CLUSTER_H_
#define PANDO_TESTS_SIM_SIM_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cluster/peer_net.h"
#include "tests/sim/sim_node.h"

namespace pando::sim {

class SimCluster {
 public:
  SimCluster(EventQueue* events, Random* random, bool collide)
      : events_(events), random_(random), collide_(collide) {}

  void Add(SimNode* node);
  // All have been added.
  void Start();
  // No fault from now on, and what was parted is joined.
  void Heal();
  void Stop() { stopped_ = true; }

  // After quiet: whether each node's view of each other is what that one holds.
  void CheckConverged(Checker* checker) const;

 private:
  LoopbackFate Fate(LoopbackMessage kind);
  void Pump();
  void PumpBy(Nanos time);
  void Disturb();

  EventQueue* events_;
  Random* random_;
  const bool collide_;  // all keys of the trees are equal
  testing::PeerNet net_;
  std::vector<SimNode*> nodes_;
  Nanos pump_at_ = INT64_MAX;
  bool faults_ = true, stopped_ = false;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIM_CLUSTER_H_
