// What goes wrong with nodes and between them, and when. Each fault is a decision of its own.
// One thread.
#ifndef PANDO_TESTS_SIM_ADVERSARY_H_
#define PANDO_TESTS_SIM_ADVERSARY_H_

#include <cstdint>
#include <vector>

#include "tests/sim/decisions.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/faults.h"
#include "tests/sim/sim_cluster.h"

namespace pando::sim {

class Adversary {
 public:
  // `most`: how long a fault may last.
  Adversary(const FaultSet& faults, Nanos most, EventQueue* events, Decisions* decisions,
            SimCluster* cluster);

  // One fault, at that time, if any kind of it is to be had.
  void Plan(Nanos time);
  // Some faults of the network from now on, and others again and again, so many units apart.
  void KeepOn(uint64_t pause);
  void Stop() { stopped_ = true; }

  uint64_t faults() const { return faults_; }

 private:
  void Strike(Random random);
  bool StrikeNode(Fault fault, Random* random);
  bool StrikeNetwork(Fault fault, Random* random);
  Nanos Time(Random* random, Nanos most) const;

  std::vector<Fault> kinds_;
  const Nanos most_;
  EventQueue* events_;
  Decider decider_;
  SimCluster* cluster_;
  bool stopped_ = false;
  uint64_t faults_ = 0;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_ADVERSARY_H_
