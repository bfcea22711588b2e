// Whole lives of a node and its replicas, from seeds. A failing seed is run again with
// `pando-sim --seed S --steps N`.
#include <gtest/gtest.h>

#include "tests/sim/simulator.h"

namespace pando::sim {
namespace {

#ifdef PANDO_SANITIZED
constexpr uint64_t kSteps = 20'000;
#else
constexpr uint64_t kSteps = 60'000;
#endif

SimulationReport RunSound(const SimulationOptions& options) {
  SimulationReport report = Simulate(options);
  EXPECT_EQ(report.failures, 0u) << "seed " << options.seed;
  for (const std::string& failure : report.first_failures) ADD_FAILURE() << failure;
  return report;
}

// FAULTS B1, B2, B5, C1, C2, C3
class SimulationOfSeed : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimulationOfSeed, KeepsEveryPromise) {
  const SimulationReport report = RunSound({.seed = GetParam(), .steps = kSteps});
  // A simulation in which nothing happens proves nothing.
  EXPECT_GT(report.deaths, 20u);
  EXPECT_GT(report.blocks_loaded, report.steps / 50);
  const CoreCounters& counters = report.status.counters;
  EXPECT_GT(counters.claims_expired, 100u);
  EXPECT_GT(counters.pages_bad, 10u);
  EXPECT_GT(counters.pages_given_up, 100u);
  EXPECT_GT(counters.reserve_full + counters.quarantine_refused, 10u);
  EXPECT_GT(counters.requests_refused.total(), 100u);
  EXPECT_GT(report.status.account.failed, 0u);
  ASSERT_EQ(report.status.spaces.size(), 2u);
  for (const SpaceStatus& space : report.status.spaces) {
    EXPECT_GT(space.stats.evicted_blocks, 100u);
    EXPECT_GT(space.account.hit_host, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationOfSeed, ::testing::Range<uint64_t>(1, 6));

TEST(SimulationTest, ASeedGivesOneHash) {
  const SimulationReport first = RunSound({.seed = 7, .steps = kSteps / 4});
  const SimulationReport again = RunSound({.seed = 7, .steps = kSteps / 4});
  EXPECT_EQ(first.hash, again.hash);
  EXPECT_NE(first.hash, RunSound({.seed = 8, .steps = kSteps / 4}).hash);
  const SimulationOptions cluster{.seed = 7, .steps = kSteps / 4, .nodes = 3};
  EXPECT_EQ(RunSound(cluster).hash, RunSound(cluster).hash);
}

// FAULTS B2, B6, D4, D6, E1 to E7, G4: nodes that share, parted, slow, lossy, with pages that come
// wrong.
class SimulationOfCluster : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Seldom enough that a short simulation may have none: there are some in all of them.
  static void TearDownTestSuite() { EXPECT_TRUE(ran < 6 || wrong_bytes > 0); }
  static uint32_t ran;
  static uint64_t wrong_bytes;  // in pages and feeds
};
uint32_t SimulationOfCluster::ran = 0;
uint64_t SimulationOfCluster::wrong_bytes = 0;

TEST_P(SimulationOfCluster, KeepsEveryPromise) {
  const auto nodes = static_cast<uint32_t>(2 + GetParam() % 4);
  const SimulationReport report =
      RunSound({.seed = GetParam(), .steps = kSteps, .nodes = nodes, .replicas = 3});
  EXPECT_GT(report.deaths, 20u);
  EXPECT_GT(report.fetched_pages, kSteps / 200);
  EXPECT_GT(report.awaited_blocks, kSteps / 400);
  EXPECT_GT(report.hit_peer, 0u);
  ++ran;
  wrong_bytes += report.bad_pages_pulled + report.feeds_broken;
}

// 2, 23 and 34 have found faults.
INSTANTIATE_TEST_SUITE_P(Seeds, SimulationOfCluster, ::testing::Values(1, 2, 3, 5, 23, 34));

// FAULTS A8
TEST(SimulationTest, KeepsEveryPromiseWhenAllKeysCollide) {
  SimulationOptions options{.seed = 7, .steps = kSteps / 4, .intents = false};
  const uint64_t hash = RunSound(options).hash;
  options.collide = true;
  EXPECT_EQ(RunSound(options).hash, hash) << "content decides, not the keys";
  // A key that names what is being computed may be another's: that costs a wait, never a byte.
  options.intents = true;
  RunSound(options);
  options.nodes = 3;
  RunSound(options);
}

TEST(SimulationTest, ChecksEveryStepOfAShortLife) {
  RunSound({.seed = 9, .steps = 3'000, .replicas = 3, .extents = 6, .check_every = 1});
}

}  // namespace
}  // namespace pando::sim
