// Real processes, killed and stopped at every named step: survivors answer within their deadlines,
// no byte is wrong, and memory comes back.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/steps.h"
#include "tests/e2e/process/engine.h"
#include "tests/e2e/process/engine_lines.h"
#include "tests/e2e/process/node_process.h"

namespace pando::e2e {
namespace {

constexpr uint64_t kSeed = 7;
constexpr uint64_t kTokens = 1024;         // 64 blocks
constexpr uint64_t kResidentTokens = 512;  // 32 of them are stored before a victim starts

// The survivor asks for what the victim was working on: nothing wrong, then all of it is there
// again.
void ExpectServed(Engine& survivor) {
  const int64_t start = Now();
  EXPECT_EQ(survivor.Run(kSeed, kTokens).wrong, 0u);
  const Cycle again = survivor.Run(kSeed, kTokens);
  EXPECT_EQ(again.wrong, 0u);
  EXPECT_EQ(again.loaded,
            kTokens / 16 - 1);  // one token is left to compute, so the last block is not loaded
  EXPECT_TRUE(again.settled);
  EXPECT_LT(Now() - start, 20 * kSecond);
}

// FAULTS C1, C3, D1: an engine killed at each step of its life.
class EngineKilledAt : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EngineKilledAt, LeavesNothingBehindAndHarmsNobody) {
  NodeProcess node;
  auto living =
      std::make_unique<Engine>(EngineOptions{.socket = node.socket(), .replica_key = "survivor"});
  Engine& survivor = *living;
  ASSERT_TRUE(survivor.Attach(Now() + 5 * kSecond));
  ASSERT_EQ(survivor.Run(kSeed, kResidentTokens).stored, kResidentTokens / 16);

  Child victim(EngineArgs(node, "victim", "both", 0, 1, std::string(GetParam())));
  victim.Send("attach");
  victim.Send("cycle 7 1024");
  ASSERT_TRUE(victim.ReadUntil("paused", Now() + 10 * kSecond))
      << "step " << GetParam() << " was never reached";
  ASSERT_TRUE(victim.WaitStopped(Now() + 5 * kSecond));
  victim.Signal(SIGKILL);
  ASSERT_TRUE(victim.WaitExit(Now() + 5 * kSecond));

  EXPECT_EQ(node.WaitFor("/sessions", 1, Now() + 5 * kSecond), "");
  EXPECT_EQ(node.WaitFor("/holds", 0, Now() + 5 * kSecond), "");
  EXPECT_EQ(node.WaitFor("/reservations", 0, Now() + 5 * kSecond), "");
  EXPECT_EQ(node.WaitFor("/pages/quarantined", 0, Now() + 5 * kSecond), "");
  ExpectServed(survivor);
  living.reset();
  EXPECT_EQ(node.WaitBase(Now() + 5 * kSecond), "");
  EXPECT_TRUE(node.SelfCheck());
}

// Those that an engine reaches while its node lives; the others are
// EngineKilledWhileItsNodeIsGone's.
std::vector<std::string_view> ClientSteps() {
  std::vector<std::string_view> steps;
  for (std::string_view step : client::StepNames()) {
    if (step != "client.lost" && step != "client.unmapped") steps.push_back(step);
  }
  return steps;
}

std::string StepTestName(const ::testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Steps, EngineKilledAt, ::testing::ValuesIn(ClientSteps()), StepTestName);

// FAULTS C3, C4: an engine that has lost its node and dies before it has attached to the next one.
TEST(EngineKilledWhileItsNodeIsGone, LeavesNothingBehind) {
  for (const std::string step : {"client.lost", "client.unmapped"}) {
    SCOPED_TRACE(step);
    NodeProcess node;
    Child victim(EngineArgs(node, "victim", "both", 0, 1, step));
    victim.Send("attach");
    victim.Send("cycle 7 1024");
    ASSERT_TRUE(ReadCycle(victim, Now() + 10 * kSecond));
    node.child().Signal(SIGKILL);
    ASSERT_TRUE(node.child().WaitExit(Now() + 5 * kSecond));
    victim.Send("cycle 7 1024");
    victim.Send("attach");
    ASSERT_TRUE(victim.ReadUntil("paused", Now() + 10 * kSecond));
    ASSERT_TRUE(node.Restart());
    victim.Signal(SIGKILL);
    ASSERT_TRUE(victim.WaitExit(Now() + 5 * kSecond));
    auto survivor = std::make_unique<Engine>(EngineOptions{.socket = node.socket()});
    ASSERT_TRUE(survivor->Attach(Now() + 5 * kSecond));
    ExpectServed(*survivor);
    survivor.reset();
    EXPECT_EQ(node.WaitBase(Now() + 5 * kSecond), "");
  }
}

// Steps that a node alone does not reach: peer_kill_test.cc.
bool IsOfPeers(const std::string& step) {
  return step.starts_with("ticket.") || step.starts_with("grant.") || step.starts_with("fetch.");
}

std::vector<std::string> NodeSteps() {
  const std::optional<std::string> list =
      RunToEnd({BinaryPath("pando-node"), "--list-steps"}, Now() + 5 * kSecond);
  std::vector<std::string> steps;
  std::istringstream lines(list.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!IsOfPeers(line)) steps.push_back(line);
  }
  return steps;
}

// Makes a node go through its life: an engine's cycles, its death, then SIGTERM. Stops as soon as
// the node says that it paused; false if it never did.
bool DriveUntilPaused(NodeProcess& node, Child& engine) {
  if (node.paused()) return true;
  engine.Send("attach");
  engine.Send("cycle 7 512");
  engine.Send("cycle 7 1024");
  if (node.child().ReadUntil("paused", Now() + kSecond)) return true;
  Child unwanted(EngineArgs(node, "engine", "both", 0, 1, ""));
  unwanted.Send("attach");
  engine.Send("restart 7 1024");
  engine.Send("expire 7 1024");
  engine.Send("cycle 8 40000");  // more than the slab has room for
  if (node.child().ReadUntil("paused", Now() + 8 * kSecond)) return true;
  Child other(EngineArgs(node, "other", "both", 0, 1, "client.page_loaded"));
  other.Send("attach");
  other.Send("cycle 7 1024");
  other.WaitStopped(Now() + kSecond);
  other.Signal(SIGKILL);
  if (node.child().ReadUntil("paused", Now() + kSecond)) return true;
  node.child().Signal(SIGTERM);
  return node.child().ReadUntil("paused", Now() + 10 * kSecond).has_value();
}

// FAULTS C4, D1, D2: a node killed at each of its steps; its engine goes on and finds the next node
// by itself.
TEST(NodeKilled, AtEachStepTheEngineGoesOnAndComesBack) {
  const std::vector<std::string> steps = NodeSteps();
  ASSERT_GE(steps.size(), 10u);
  std::vector<std::string> never;
  for (const std::string& step : steps) {
    SCOPED_TRACE(step);
    NodeProcess node({"--pause-at", step}, "64MiB");
    Child engine(EngineArgs(node, "engine", "both", 0, 1, ""));
    if (!DriveUntilPaused(node, engine)) {
      never.push_back(step);
      continue;
    }
    node.child().Signal(SIGKILL);
    ASSERT_TRUE(node.child().WaitExit(Now() + 5 * kSecond));
    if (!node.paused()) {
      ASSERT_TRUE(ReadCycle(engine, Now() + 20 * kSecond));
      ASSERT_TRUE(ReadCycle(engine, Now() + 20 * kSecond));
    }
    ASSERT_TRUE(node.Restart());
    engine.Send("attach");
    ASSERT_TRUE(engine.ReadUntil("attached", Now() + 10 * kSecond));
    engine.Send("cycle 7 1024");
    const std::optional<CycleLine> first = ReadCycle(engine, Now() + 10 * kSecond);
    engine.Send("cycle 7 1024");
    const std::optional<CycleLine> second = ReadCycle(engine, Now() + 10 * kSecond);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->hit, 0);
    EXPECT_EQ(first->stored, 64);
    EXPECT_EQ(second->loaded, 63);
    EXPECT_EQ(first->wrong + second->wrong, 0);
  }
  std::string list;
  for (const std::string& step : never) list += step + " ";
  EXPECT_EQ(list, "") << "steps that this test does not reach";
}

// FAULTS D1, D6: a stopped node costs one deadline, then counts as absent; continued, it serves
// again.
TEST(NodeStopped, CostsOneDeadlineAndServesAgain) {
  NodeProcess node;
  auto living =
      std::make_unique<Engine>(EngineOptions{.socket = node.socket(), .deadline_ns = 200'000'000});
  Engine& engine = *living;
  ASSERT_TRUE(engine.Attach(Now() + 5 * kSecond));
  ASSERT_EQ(engine.Run(kSeed, kTokens).stored, 64u);
  node.child().Signal(SIGSTOP);
  ASSERT_TRUE(node.child().WaitStopped(Now() + 5 * kSecond));
  EXPECT_EQ(engine.Run(kSeed, kTokens).hit_blocks, 0u);
  EXPECT_EQ(engine.client().state(), client::State::kAbsent);
  const int64_t start = Now();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(engine.Run(kSeed, kTokens).hit_blocks, 0u);
  EXPECT_LT(Now() - start, kSecond) << "calls to an absent node must not wait";
  node.child().Signal(SIGCONT);
  ASSERT_TRUE(engine.Attach(Now() + 5 * kSecond));
  const Cycle cycle = engine.Run(kSeed, kTokens);
  EXPECT_EQ(cycle.loaded, 63u);
  EXPECT_EQ(cycle.wrong, 0u);
  living.reset();
  EXPECT_EQ(node.WaitBase(Now() + 5 * kSecond), "");
  EXPECT_TRUE(node.SelfCheck());
}

std::string StoreLine(const client::Claim& claim) {
  return "store " + std::to_string(claim.boot_id) + " " + std::to_string(claim.id) + " " +
         std::to_string(kSeed);
}

// FAULTS B2, C10: a worker stopped in the middle of a store, past its claim's deadline. Its pages
// are quarantined, the blocks can be stored by others at once, and what it writes when it goes on
// harms nobody.
TEST(WorkerStopped, InMidStorePastTheDeadlineHarmsNobody) {
  NodeProcess node;
  Engine scheduler(
      {.socket = node.socket(), .replica_key = "stopped", .role = client::Role::kScheduler});
  Child worker(EngineArgs(node, "stopped", "worker", 0, 1, "client.page_stored:3"));
  worker.Send("attach");
  ASSERT_TRUE(worker.ReadUntil("attached", Now() + 5 * kSecond));
  ASSERT_TRUE(scheduler.Attach(Now() + 5 * kSecond));
  ASSERT_EQ(scheduler.Acquire(1, kSeed, kTokens, kSecond).code, client::Code::kOk);
  const client::ReserveResult reserved = scheduler.Reserve(1, 0, 64, kSecond);
  ASSERT_TRUE(reserved.claim) << reserved.message;
  worker.Send(StoreLine(reserved.claim));
  ASSERT_TRUE(worker.ReadUntil("paused", Now() + 5 * kSecond));
  ASSERT_TRUE(worker.WaitStopped(Now() + 5 * kSecond));
  EXPECT_EQ(node.WaitFor("/pages/quarantined", 64, Now() + 5 * kSecond), "");

  Engine other({.socket = node.socket(), .replica_key = "other"});
  ASSERT_TRUE(other.Attach(Now() + 5 * kSecond));
  EXPECT_EQ(other.Run(kSeed, kTokens).stored, 64u);
  worker.Signal(SIGCONT);
  const std::optional<std::string> late = worker.ReadUntil("stored ", Now() + 5 * kSecond);
  ASSERT_TRUE(late);
  EXPECT_TRUE(
      late->starts_with("stored " + std::to_string(static_cast<int>(client::Code::kUnknown))))
      << *late;
  EXPECT_EQ(node.WaitFor("/pages/quarantined", 0, Now() + 5 * kSecond), "");
  const Cycle again = other.Run(kSeed, kTokens);
  EXPECT_EQ(again.loaded, 63u);
  EXPECT_EQ(again.wrong, 0u);
  EXPECT_TRUE(node.SelfCheck());
}

// FAULTS B2, B5: two shards; one worker is killed while the other copies. The block never becomes
// visible, the living worker's pages come back with its End, the dead one's with its process.
TEST(TwoShards, OneWorkerDiesWhileTheOtherCopies) {
  NodeProcess node;
  Engine scheduler({.socket = node.socket(),
                    .replica_key = "tp2",
                    .role = client::Role::kScheduler,
                    .world_size = 2});
  Child alive(EngineArgs(node, "tp2", "worker", 0, 2, "client.page_stored:2"));
  Child dies(EngineArgs(node, "tp2", "worker", 1, 2, "client.page_stored:5"));
  for (Child* worker : {&alive, &dies}) {
    worker->Send("attach");
    ASSERT_TRUE(worker->ReadUntil("attached", Now() + 5 * kSecond));
  }
  ASSERT_TRUE(scheduler.Attach(Now() + 5 * kSecond));
  ASSERT_EQ(scheduler.Acquire(1, kSeed, kTokens, 60 * kSecond).code, client::Code::kOk);
  const client::ReserveResult reserved = scheduler.Reserve(1, 0, 64, 60 * kSecond);
  ASSERT_TRUE(reserved.claim) << reserved.message;
  for (Child* worker : {&alive, &dies}) {
    worker->Send(StoreLine(reserved.claim));
    ASSERT_TRUE(worker->ReadUntil("paused", Now() + 5 * kSecond));
    ASSERT_TRUE(worker->WaitStopped(Now() + 5 * kSecond));
  }
  EXPECT_EQ(node.WaitFor("/pages/receiving", 128, Now() + 5 * kSecond), "");
  dies.Signal(SIGKILL);
  ASSERT_TRUE(dies.WaitExit(Now() + 5 * kSecond));
  EXPECT_EQ(node.WaitFor("/pages/quarantined", 64, Now() + 5 * kSecond), "")
      << "the living worker's";
  alive.Signal(SIGCONT);
  ASSERT_TRUE(alive.ReadUntil("stored ", Now() + 5 * kSecond));
  EXPECT_EQ(node.WaitFor("/pages/quarantined", 0, Now() + 5 * kSecond), "");
  EXPECT_EQ(node.WaitFor("/pages/committed", 0, Now() + 5 * kSecond), "");
  EXPECT_TRUE(node.SelfCheck());
}

}  // namespace
}  // namespace pando::e2e
