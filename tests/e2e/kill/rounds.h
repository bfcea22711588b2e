// One round: a victim, a step or a moment, a signal, and what must hold afterwards. One thread.
#ifndef PANDO_TESTS_E2E_KILL_ROUNDS_H_
#define PANDO_TESTS_E2E_KILL_ROUNDS_H_

#include <string>

#include "tests/e2e/kill/cluster.h"
#include "tests/e2e/kill/plan.h"
#include "tests/e2e/kill/report.h"

namespace pando::e2e {

class Rounds {
 public:
  Rounds(Cluster* cluster, Report* report) : cluster_(*cluster), report_(*report) {}

  void Run(const Plan& plan);

 private:
  void AtEngine(const Plan& plan);
  void AtEngineWithoutNode(const Plan& plan);
  void AtNode(const Plan& plan);
  void AtNodeStep(const Plan& plan);
  void AtTransfer(const Plan& plan);

  // Stops the engine of the plan for longer than its claims stand; what it may be touching is
  // counted as quarantined.
  void StopEngine(const Plan& plan);
  // Lets a node meet what it meets seldom: an engine's death in mid-load, one that is refused, one
  // that replaces itself, a claim that expires, a prompt larger than the slab.
  void Provoke(const Plan& plan);
  // SIGKILL, and what must hold of the node's own processes.
  void KillNode(size_t host, const std::string& where);
  // What an engine had of its node's memory is free within `patience` of `since`, at which somebody
  // died or went on. The other engines of that node rest meanwhile.
  void CheckBack(size_t host, int64_t since, int64_t patience = kMemoryBack);

  Cluster& cluster_;
  Report& report_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_ROUNDS_H_
