#include "tests/sim/simulator.h"

#include <memory>

#include "tests/sim/replica.h"

namespace pando::sim {
namespace {

// All processes have gone: whatever is still counted was leaked.
void CheckBase(const CoreStatus& status, const PageMemory& memory, Checker* checker) {
  checker->Expect(status.leases == 0, "a lease was leaked");
  checker->Expect(status.reservations == 0, "a reservation was leaked");
  checker->Expect(status.holds == 0, "a hold was leaked");
  checker->Expect(status.requests == 0, "a request was leaked");
  checker->Expect(status.sessions == 0, "a session was leaked");
  checker->Expect(status.replicas == 0, "a replica was leaked");
  checker->Expect(status.quarantined_bytes == 0, "quarantined bytes were leaked");
  checker->Expect(status.pages.reserved + status.pages.receiving + status.pages.held +
                          status.pages.quarantined ==
                      0,
                  "a page was leaked");
  checker->Expect(memory.accessors() == 0, "a copy goes on (a fault of the simulator)");
  const Account& a = status.account;
  checker->Expect(
      a.prompt == a.hit_engine + a.hit_device + a.hit_host + a.hit_disk + a.hit_peer + a.computed,
      "the account does not balance");
}

}  // namespace

SimulationReport Simulate(const SimulationOptions& options) {
  EventQueue events;
  Random random(options.seed);
  Checker checker;
  PageMemory memory(&checker);
  SimNode node({options.extents, options.collide, options.check_every}, &events, &random, &checker);
  const World world{&events, &random, &checker, &memory, &node};
  std::vector<std::unique_ptr<Replica>> replicas;
  for (uint32_t i = 0; i < options.replicas; ++i) {
    const uint32_t shards = 1 + i % 2;  // two spaces, replicas of each share pages
    replicas.push_back(
        std::make_unique<Replica>(ReplicaOptions{"replica-" + std::to_string(i), shards,
                                                 shards == 1 && i % 4 == 0, shards - 1},
                                  world));
    replicas.back()->Start();
  }
  while (node.steps() < options.steps && !events.empty() && checker.failures() < 100) {
    events.RunNext();
  }
  for (auto& replica : replicas) replica->Stop();
  while (!events.empty()) events.RunNext();

  SimulationReport report;
  report.status = node.core().status();
  const std::string broken = node.core().SelfCheck();
  if (!broken.empty()) checker.Fail("at the end: " + broken);
  CheckBase(report.status, memory, &checker);
  report.hash = checker.hash();
  report.failures = checker.failures();
  report.first_failures = checker.first_failures();
  report.steps = node.steps();
  for (const auto& replica : replicas) {
    report.requests += replica->requests();
    report.blocks_loaded += replica->blocks_loaded();
    report.deaths += replica->deaths();
  }
  return report;
}

}  // namespace pando::sim
