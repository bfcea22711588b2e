#include "tests/sim/simulator.h"

#include <algorithm>
#include <memory>

#include "tests/sim/adversary.h"
#include "tests/sim/replica.h"
#include "tests/sim/sim_cluster.h"

namespace pando::sim {
namespace {

constexpr Nanos kHour = 3600 * kSecond;
// Long enough for every backoff, breaker and grant.
constexpr Nanos kRecovery = 150 * kSecond;
// Long enough for a fetch that waits for its turn.
constexpr Nanos kServed = 30 * kSecond;
// Long enough for every deadline, backoff and digest.
constexpr Nanos kQuiet = 200 * kSecond;
constexpr uint32_t kFreshBlocks = 3;

// All processes have gone: whatever is still counted was leaked.
void CheckBase(const CoreStatus& status, const PageMemory& memory, Checker* checker) {
  checker->Expect(status.leases == 0, "a lease was leaked");
  checker->Expect(status.reservations == 0, "a reservation was leaked");
  checker->Expect(status.holds == 0, "a hold was leaked");
  checker->Expect(status.tickets == 0, "a ticket was leaked");
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

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        random_(options.seed),
        decisions_(options.seed, options.only, options.on_decision),
        workload_(options.trace, random_.Next() % (uint64_t{1} << 32)),
        cluster_({random_.Next(), options.collide, options.peer_delay, Has(Fault::kScarce)},
                 &events_) {
    for (uint32_t n = 0; n < options.nodes; ++n) AddNode();
    adversary_ = std::make_unique<Adversary>(options.faults, (options.hour ? 60 : 2) * kSecond,
                                             &events_, &decisions_, &cluster_);
    cluster_.Start();
    for (const auto& node : nodes_) AddReplicas(node.get());
  }

  SimulationReport Run() {
    Load();
    adversary_->Stop();
    for (auto& replica : replicas_) replica->Calm();
    cluster_.Heal();
    Pass(kRecovery);
    CheckLiveness();
    for (auto& replica : replicas_) replica->Stop();
    Pass(kQuiet);
    if (Sound()) CheckEnd();
    cluster_.Stop();
    return Report();
  }

 private:
  bool Has(Fault fault) const { return options_.faults.test(static_cast<size_t>(fault)); }
  bool Sound() const { return checker_.failures() == 0; }

  void AddNode() {
    const Nanos ahead = random_.OneIn(2) ? 0 : static_cast<Nanos>(random_.Below(kHour));
    nodes_.push_back(std::make_unique<SimNode>(
        SimNode::Options{random_.Next(), options_.extents, options_.extent_pages_max,
                         options_.collide, options_.check_every, options_.delay, ahead},
        &events_, &checker_, &coverage_));
    cluster_.Add(nodes_.back().get(), options_.extents);
  }

  void AddReplicas(SimNode* node) {
    const World world{&events_, &checker_, &decisions_, &workload_, node};
    for (uint32_t i = 0; i < options_.replicas; ++i) {
      const uint32_t shards = 1 + i % 2;  // two spaces, replicas of each share pages
      replicas_.push_back(std::make_unique<Replica>(
          ReplicaOptions{.key = "replica-" + std::to_string(i),
                         .shards = shards,
                         .single = shards == 1 && i % 4 == 0,
                         .geometry = shards - 1,
                         .intents = options_.intents,
                         .faults = options_.faults,
                         .one_in = options_.hour ? 100u : 700u,
                         .seed = random_.Next(),
                         .source = static_cast<uint32_t>(replicas_.size()) + 1},
          world));
      replicas_.back()->Start();
    }
  }

  // ---- Load

  void Load() {
    if (options_.hour) {
      PlanHour(*options_.hour);
      return Pass(kHour);
    }
    adversary_->KeepOn(kUnitsPerSecond / 2);
    events_.After(1000, [this] {
      for (auto& replica : replicas_) replica->Act(UINT64_MAX, 120);
    });
    while (Steps() < options_.steps && !events_.empty() && Sound()) events_.RunNext();
  }

  // Half of the faults strike when there is something to hit.
  void PlanHour(const HourPlan& plan) {
    std::vector<Nanos> bursts;
    for (uint64_t burst = 0; burst < plan.bursts; ++burst) {
      bursts.push_back(static_cast<Nanos>(random_.Below(kHour - 20 * kSecond)));
      PlanBurst(bursts.back(), plan.acts / plan.bursts / replicas_.size() + 1);
    }
    for (uint64_t fault = 0; fault < plan.faults; ++fault) {
      Nanos at = static_cast<Nanos>(random_.Below(kHour));
      if (random_.OneIn(2)) {
        at = bursts[random_.Below(bursts.size())] + static_cast<Nanos>(random_.Below(kSecond));
      }
      adversary_->Plan(at);
    }
  }

  void PlanBurst(Nanos at, uint64_t acts) {
    constexpr uint64_t kPauses[] = {10, 50, 250, 1000, 5000};
    const uint64_t pause = kPauses[random_.Below(std::size(kPauses))];
    events_.At(at, [this, acts, pause] {
      for (auto& replica : replicas_) replica->Act(acts, pause);
    });
  }

  void Pass(Nanos time) {
    const Nanos until = events_.now() + time;
    while (Sound() && !events_.empty() && events_.next() < until) events_.RunNext();
    if (Sound()) events_.Pass(until);
  }

  uint64_t Steps() const {
    uint64_t steps = 0;
    for (const auto& node : nodes_) steps += node->steps();
    return steps;
  }

  // ---- Liveness

  // What nobody has computed yet is, on each node; then each node must have it.
  void CheckLiveness() {
    for (const uint64_t round : {1, 2}) {
      for (size_t first = 0; first < replicas_.size(); first += options_.replicas) {
        for (const uint64_t geometry : {0, 1}) {
          if (!Sound() || options_.replicas <= geometry) return;
          AskOne(first + geometry, round == 2 || (first > 0 && !options_.collide));
        }
      }
    }
  }

  void AskOne(size_t index, bool must_hit) {
    Replica* replica = replicas_[index].get();
    if (!replica->Serving()) return checker_.Fail("a replica cannot attach after faults stopped");
    auto loaded = std::make_shared<std::optional<uint32_t>>();
    replica->Ask(FreshPrompt(kFresh + replica->geometry(), kFreshBlocks),
                 [loaded](uint32_t blocks) { *loaded = blocks; });
    Pass(kServed);
    if (!Sound()) return;
    if (!*loaded) return checker_.Fail("a request is not served after faults stopped");
    if (!must_hit || **loaded == kFreshBlocks) return;
    checker_.Fail("replica " + std::to_string(index) + " hits " + std::to_string(**loaded) +
                  " blocks of what was computed after faults stopped");
  }

  // ---- The end

  void CheckEnd() {
    for (const auto& node : nodes_) {
      const std::string broken = node->core().SelfCheck();
      if (!broken.empty()) checker_.Fail("at the end: " + broken);
      CheckBase(node->core().status(), *node->memory(), &checker_);
    }
    if (options_.nodes > 1) cluster_.CheckConverged(&checker_);
  }

  SimulationReport Report() {
    SimulationReport report;
    for (const auto& node : nodes_) {
      const SimNode::Sums sums = node->sums();
      report.fetched_pages += sums.pages_fetched;
      report.feeds_broken += sums.feeds_broken;
      report.hit_peer += sums.hit_peer;
      report.bad_pages_pulled += sums.pages_bad;
    }
    if (nodes_.front()->up()) report.status = nodes_.front()->core().status();
    report.hash = checker_.hash();
    report.failures = checker_.failures();
    report.first_failures = checker_.first_failures();
    report.steps = Steps();
    report.events = events_.ran();
    report.faults = adversary_->faults();
    for (const auto& replica : replicas_) {
      report.requests += replica->requests();
      report.blocks_loaded += replica->blocks_loaded();
      report.awaited_blocks += replica->awaited_blocks();
      report.deaths += replica->deaths();
      report.faults += replica->faults();
    }
    report.coverage = coverage_.counts();
    return report;
  }

  static constexpr uint64_t kFresh = 1'000'000;

  const SimulationOptions options_;
  Coverage coverage_;
  EventQueue events_;
  Random random_;
  Checker checker_;
  Decisions decisions_;
  const Workload workload_;
  SimCluster cluster_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::unique_ptr<Adversary> adversary_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace

SimulationReport Simulate(const SimulationOptions& options) {
  return Simulation(options).Run();
}

}  // namespace pando::sim
