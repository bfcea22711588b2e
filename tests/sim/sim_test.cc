// Whole lives of nodes and their replicas, from seeds: short ones under as much load as can be, and
// hours of clusters. A failing seed is run again with `pando-sim --seed S --steps N`, a failing
// hour with `pando-sim --seed S --from HOUR --hours 1`, which shrinks it too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "radix/base/check.h"
#include "tests/paths.h"
#include "tests/sim/apart.h"
#include "tests/sim/hours.h"
#include "tests/sim/replay.h"
#include "tests/sim/shrink.h"
#include "tests/sim/simulator.h"

namespace pando::sim {
namespace {

#ifdef PANDO_SANITIZED
constexpr uint64_t kSteps = 20'000, kHours = 2;
#else
constexpr uint64_t kSteps = 60'000, kHours = 6;
#endif

// Those that leave a node the life it has.
FaultSet Steady() {
  return *ParseFaults(
      "partition,reset,slow,lose,repeat,late,corrupt,lie,death,socket,hang,forget,bad,haste,"
      "misuse");
}

const std::vector<model::TraceRequest>& Trace() {
  static const auto* trace = new std::vector<model::TraceRequest>(
      model::ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz"));
  return *trace;
}

SimulationReport RunSound(const SimulationOptions& options) {
  SimulationReport report = Simulate(options);
  EXPECT_EQ(report.failures, 0u) << "seed " << options.seed;
  for (const std::string& failure : report.first_failures) ADD_FAILURE() << failure;
  return report;
}

// FAULTS B1, B2, B5, C1, C2, C3
class SimulationOfSeed : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimulationOfSeed, KeepsEveryPromise) {
  const SimulationReport report =
      RunSound({.seed = GetParam(), .steps = kSteps, .faults = Steady()});
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
  const SimulationReport report = RunSound(
      {.seed = GetParam(), .steps = kSteps, .nodes = nodes, .replicas = 3, .faults = Steady()});
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

// FAULTS A8, B2, C1, D2, D6, E1 to E7, G4: hours of clusters whose nodes die and come back, stall,
// lose time and each other.
class SimulationOfHours : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimulationOfHours, KeepEveryPromise) {
  const SimulationOptions options = DrawHour({.seed = 1, .hour = GetParam(), .trace = &Trace()});
  const SimulationReport report = RunSound(options);
  EXPECT_GE(options.nodes, kHourNodes);
  EXPECT_GE(report.requests, kHourRequests);
  EXPECT_GE(report.faults, kHourFaults);
}

INSTANTIATE_TEST_SUITE_P(Hours, SimulationOfHours, ::testing::Range<uint64_t>(0, kHours));

TEST(SimulationOfHoursTest, KeepEveryPromiseWithAllFaultsAtOnce) {
  const SimulationOptions options =
      DrawHour({.seed = 2, .faults = FaultSet().set(), .trace = &Trace()});
  EXPECT_EQ(RunSound(options).hash, RunSound(options).hash);
}

// What simulations have found, shrunk: each is played again.
TEST(SimulationOfHoursTest, KeepWhatOnceBroke) {
  for (const auto& file : std::filesystem::directory_iterator(PANDO_TEST_DATA "/sim")) {
    if (file.path().extension() != ".txt") continue;
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    auto replay = ParseReplay(text.str());
    ASSERT_TRUE(replay.ok()) << file.path() << ": " << replay.status().message();
    replay->hour.trace = &Trace();
    SCOPED_TRACE(file.path());
    RunSound(replay->Options());
  }
}

// ---- Shrinking

TEST(ShrinkTest, LeavesWhatTheViolationNeeds) {
  std::vector<Decision> all;
  for (uint32_t i = 0; i < 1000; ++i) all.push_back({i % 7, i});
  const std::vector<Decision> needed{{31 % 7, 31}, {640 % 7, 640}, {641 % 7, 641}};
  uint64_t asked = 0;
  const auto stays = [&](const std::vector<Decision>& some) {
    ++asked;
    return std::all_of(needed.begin(), needed.end(), [&](const Decision& decision) {
      return std::find(some.begin(), some.end(), decision) != some.end();
    });
  };
  EXPECT_EQ(Shrink(all, 1000, stays), needed);
  EXPECT_LT(asked, 200u);
  EXPECT_EQ(Shrink(all, 0, stays), all);
}

TEST(ShrinkTest, AReplayIsWhatWasWritten) {
  const Replay replay{"a promise", {.seed = 7, .hour = 9, .nodes = 4}, {{0, 3}, {12, 345}}};
  const auto read = ParseReplay(Text(replay));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Text(*read), Text(replay));
  EXPECT_EQ(read->Options().only->size(), 2u);
  EXPECT_FALSE(ParseReplay("seed x").ok());
  EXPECT_FALSE(ParseReplay("sed 1").ok());
}

// Who is left out takes nothing from the chance of the others.
TEST(ShrinkTest, ADecisionIsTheSameAlone) {
  Decisions all(1, std::nullopt, nullptr);
  Decisions one(1, std::set<Decision>{{2, 5}}, nullptr);
  EXPECT_EQ(all.Take({2, 5})->Next(), one.Take({2, 5})->Next());
  EXPECT_FALSE(one.Take({2, 6}));
  EXPECT_NE(all.Take({2, 6})->Next(), all.Take({3, 6})->Next());
}

TEST(ApartTest, AProcessThatEndsIsAViolation) {
  SimulationOptions options{.seed = 3, .steps = 500};
  const Outcome sound = RunApart(options);
  EXPECT_EQ(sound.violation, "");
  EXPECT_EQ(sound.hash, Simulate(options).hash);
  options.on_decision = [](Decision decision) { PANDO_CHECK(decision.ordinal < 5) << "planted"; };
  const Outcome broken = RunApart(options);
  EXPECT_NE(broken.violation.find("planted"), std::string::npos) << broken.violation;
  EXPECT_GE(broken.decisions.size(), 5u);
}

}  // namespace
}  // namespace pando::sim
