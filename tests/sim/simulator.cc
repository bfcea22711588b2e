#include "tests/sim/simulator.h"

#include <memory>

#include "tests/sim/replica.h"
#include "tests/sim/sim_cluster.h"

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

// Long enough for every deadline, backoff and digest.
constexpr Nanos kQuiet = 200'000'000'000;

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options), random_(options.seed), cluster_(&events_, &random_, options.collide) {
    for (uint32_t n = 0; n < options.nodes; ++n) {
      nodes_.push_back(std::make_unique<SimNode>(
          SimNode::Options{options.extents, options.collide, options.check_every}, &events_,
          &random_, &checker_));
    }
    if (options.nodes > 1) {
      for (const auto& node : nodes_) cluster_.Add(node.get());
      cluster_.Start();
    }
    for (const auto& node : nodes_) AddReplicas(node.get());
  }

  SimulationReport Run() {
    while (Steps() < options_.steps && !events_.empty() && checker_.failures() < 100) {
      events_.RunNext();
    }
    for (auto& replica : replicas_) replica->Stop();
    cluster_.Heal();
    const Nanos end = events_.now() + kQuiet;
    while (!events_.empty() && (options_.nodes == 1 || events_.now() < end)) events_.RunNext();
    cluster_.Stop();
    return Report();
  }

 private:
  void AddReplicas(SimNode* node) {
    node->AddExtents();
    const World world{&events_, &random_, &checker_, node};
    for (uint32_t i = 0; i < options_.replicas; ++i) {
      const uint32_t shards = 1 + i % 2;  // two spaces, replicas of each share pages
      replicas_.push_back(std::make_unique<Replica>(
          ReplicaOptions{"replica-" + std::to_string(i), shards, shards == 1 && i % 4 == 0,
                         shards - 1, options_.intents},
          world));
      replicas_.back()->Start();
    }
  }

  uint64_t Steps() const {
    uint64_t steps = 0;
    for (const auto& node : nodes_) steps += node->steps();
    return steps;
  }

  SimulationReport Report() {
    SimulationReport report;
    for (const auto& node : nodes_) {
      const std::string broken = node->core().SelfCheck();
      if (!broken.empty()) checker_.Fail("at the end: " + broken);
      const CoreStatus status = node->core().status();
      CheckBase(status, node->memory(), &checker_);
      report.fetched_pages += status.counters.peer_pages_stored;
      report.feeds_broken += status.counters.feeds_broken;
      report.hit_peer += status.account.hit_peer;
      for (const PeerStatus& peer : status.cluster.peers) report.bad_pages_pulled += peer.pages_bad;
    }
    if (options_.nodes > 1) cluster_.CheckConverged(&checker_);
    report.status = nodes_.front()->core().status();
    report.hash = checker_.hash();
    report.failures = checker_.failures();
    report.first_failures = checker_.first_failures();
    report.steps = Steps();
    for (const auto& replica : replicas_) {
      report.requests += replica->requests();
      report.blocks_loaded += replica->blocks_loaded();
      report.awaited_blocks += replica->awaited_blocks();
      report.deaths += replica->deaths();
    }
    return report;
  }

  const SimulationOptions options_;
  EventQueue events_;
  Random random_;
  Checker checker_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  SimCluster cluster_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace

SimulationReport Simulate(const SimulationOptions& options) {
  return Simulation(options).Run();
}

}  // namespace pando::sim
