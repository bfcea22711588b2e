// Processes that die, sockets that end, engines that come back: what is given back, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

constexpr Bytes kBigPage{8ull << 20};

EngineOptions Big(uint32_t shards) {
  EngineOptions options;
  options.page_bytes = kBigPage;
  options.shards = shards;
  return options;
}

// FAULTS C3, C1: a process dies at each point of its life, in both orders of the two signs of it.
class DeathAtEachStep : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  // Lives up to step `last`, and leaves what it had begun.
  static void Live(CoreDriver* node, const Engine& a, int last) {
    if (last < 1) return;
    const ReserveAnswer reserved = node->Reserve(a, BlocksPrompt(1, 4));
    if (last < 2) return;
    const BeginItem writing = node->Begin(a.workers[0], reserved.claim);
    if (last < 3) return;
    EXPECT_EQ(node->End(a.workers[0], StoreEnd(writing)), Code::kOk);
    if (last < 4) return;
    const BeginItem other = node->Begin(a.workers[1], reserved.claim);
    EXPECT_EQ(node->End(a.workers[1], StoreEnd(other)), Code::kOk);
    if (last < 5) return;
    const AcquireAnswer hit = node->Acquire(a, RequestId(1), BlocksPrompt(1, 4));
    if (last < 6) return;
    node->Begin(a.workers[1], hit.claim);
    if (last < 7) return;
    EXPECT_EQ(node->End(a.workers[1], LoadEnd(hit.claim)), Code::kOk);
  }
};

TEST_P(DeathAtEachStep, GivesEverythingBack) {
  const auto [last, pidfd_first] = GetParam();
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  Live(&node, a, last);
  std::vector<SessionId> sessions = a.workers;
  sessions.insert(sessions.begin() + last % 3, a.scheduler);
  for (SessionId session : sessions) {
    if (pidfd_first) {
      node.Exit(session);
      node.ExpectSound();
      node.Close(session);
    } else {
      node.Close(session);
      node.ExpectSound();
      node.Exit(session);
    }
    node.ExpectSound();
  }
  EXPECT_EQ(node.status().sessions, 0u);
  EXPECT_EQ(node.status().replicas, 0u);
  EXPECT_EQ(node.status().pages.committed, last >= 4 ? 8u : 0u);
  node.ExpectBase();
  const Engine b = node.StartEngine("a", 2);
  EXPECT_EQ(node.Probe(b, BlocksPrompt(1, 4)).blocks, last >= 4 ? 4u : 0u);
}

INSTANTIATE_TEST_SUITE_P(Steps, DeathAtEachStep,
                         ::testing::Combine(::testing::Range(0, 8), ::testing::Bool()));

// FAULTS B2, C3
TEST(DeathTest, AClosedSocketEndsClaimsAndTheProcessesEndTheMemory) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", Big(2));
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 2));
  node.Begin(a.workers[0], reserved.claim);
  node.Begin(a.workers[1], reserved.claim);
  node.Close(a.workers[0]);
  EXPECT_EQ(node.status().reservations, 0u);
  EXPECT_EQ(node.status().holds, 2u);
  EXPECT_EQ(node.status().pages.quarantined, 4u);
  EXPECT_EQ(node.status().pages.free, 4u);
  node.Exit(a.workers[0]);
  EXPECT_EQ(node.status().pages.quarantined, 2u) << "only its own";
  EXPECT_EQ(node.status().pages.free, 6u);
  node.Exit(a.workers[1]);
  EXPECT_EQ(node.status().pages.quarantined, 0u);
  node.Exit(a.scheduler);
  node.ExpectBase();
}

// FAULTS B2, B5: one shard dies while the other copies.
TEST(DeathTest, TheOtherShardEndsInPeaceAndCommitsNothing) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  const BeginItem survivor = node.Begin(a.workers[1], reserved.claim);
  node.Begin(a.workers[0], reserved.claim);
  node.Kill(a.workers[0]);
  EXPECT_EQ(node.status().pages.quarantined, 4u);
  EXPECT_EQ(node.End(a.workers[1], StoreEnd(survivor)), Code::kUnknown);
  EXPECT_EQ(node.status().pages.quarantined, 0u);
  EXPECT_EQ(node.status().pages.committed, 0u);
  node.ExpectBase();
}

TEST(DeathTest, AShardThatEndedBeforeTheOtherDiedLoadedNothing) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  node.Begin(a.workers[0], hit.claim);
  node.Begin(a.workers[1], hit.claim);
  EXPECT_EQ(node.End(a.workers[0], LoadEnd(hit.claim)), Code::kOk);
  node.Kill(a.workers[1]);
  SettleRequest settle;
  settle.request = RequestId(1);
  settle.host = 4 * kBlock;
  EXPECT_NE(node.Send(a.scheduler, settle).message, "") << "counted otherwise than it was said";
  EXPECT_EQ(node.status().account.failed, 4u * kBlock);
  node.ExpectBase();
  EXPECT_EQ(node.status().pages.committed, 8u) << "the pages themselves are fine";
}

// FAULTS B2: the scheduler dies before any worker began, or while one gathers.
TEST(DeathTest, TheSchedulerDies) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer untouched = node.Reserve(a, BlocksPrompt(1, 4));
  const ReserveAnswer gathering = node.Reserve(a, BlocksPrompt(2, 4));
  const BeginItem begun = node.Begin(a.workers[0], gathering.claim);
  node.Kill(a.scheduler);
  EXPECT_EQ(node.status().reservations, 0u);
  EXPECT_EQ(node.status().pages.reserved, 0u);
  EXPECT_EQ(node.status().pages.quarantined, 4u);
  EXPECT_EQ(node.Begin(a.workers[1], untouched.claim).code, Code::kUnknown);
  EXPECT_EQ(node.Begin(a.workers[1], gathering.claim).code, Code::kUnknown);
  EXPECT_EQ(node.End(a.workers[0], StoreEnd(begun)), Code::kUnknown);
  node.ExpectBase();
  node.Kill(a.workers[0]);
  node.Kill(a.workers[1]);
  EXPECT_EQ(node.status().replicas, 0u);
}

// FAULTS C4
TEST(DeathTest, ReplacesGivesBackWhatTheOldSessionHeld) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  const BeginItem mine = node.Begin(a.workers[0], reserved.claim);
  node.Begin(a.workers[1], reserved.claim);
  node.Close(a.workers[0]);
  EXPECT_EQ(node.status().pages.quarantined, 8u);
  EngineOptions two;
  two.shards = 2;
  AttachRequest again = CoreDriver::AttachAs("a", Role::kWorker, 0, two);
  again.replaces = a.workers[0];
  const SessionId fresh = node.Open();
  EXPECT_EQ(node.Send(fresh, again).code, Code::kOk);
  EXPECT_EQ(node.status().pages.quarantined, 4u) << "the other worker still writes";
  EXPECT_EQ(node.End(fresh, StoreEnd(mine)), Code::kUnknown) << "the old session's, not its own";
  EXPECT_EQ(node.Begin(fresh, reserved.claim).code, Code::kUnknown);
  node.Exit(a.workers[0]);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 4)).blocks, 0u) << "the replica serves again";
  node.Kill(a.workers[1]);
  node.ExpectBase();
}

TEST(DeathTest, AProcessThatHasGoneIsNotServed) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  const BeginItem begun = node.Begin(a.scheduler, reserved.claim);
  node.Exit(a.scheduler);
  // Its last words were in the socket.
  EXPECT_EQ(node.Send(a.scheduler, EndRequest{{StoreEnd(begun)}}).code, Code::kUnavailable);
  EXPECT_EQ(node.status().pages.committed, 0u);
  EXPECT_EQ(node.status().replicas, 0u);
  EXPECT_EQ(node.status().sessions, 1u);
  node.Close(a.scheduler);
  EXPECT_EQ(node.status().sessions, 0u);
  node.Close(a.scheduler);
  node.Exit(a.scheduler);
  node.ExpectBase();
}

// FAULTS C3: a process is watched as long as a session of it is open or holds something.
TEST(DeathTest, ASessionIsForgottenOnceAndNotWhileItHolds) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  node.Begin(a.workers[0], reserved.claim);
  node.Close(a.scheduler);
  node.Close(a.workers[0]);
  node.Close(a.workers[1]);
  EXPECT_EQ(node.forgotten, (std::vector{a.scheduler, a.workers[1]}));
  node.Exit(a.workers[0]);
  EXPECT_EQ(node.forgotten, (std::vector{a.scheduler, a.workers[1], a.workers[0]}));
  const SessionId stranger = node.Open();
  node.Close(stranger);
  EXPECT_EQ(node.forgotten.back(), stranger) << "though it never attached";
  EXPECT_EQ(node.forgotten.size(), 4u);
  node.ExpectBase();
}

TEST(DeathTest, AReplicaOverItsQuarantineCapGetsMisses) {
  CoreDriver node({.extents = 3});
  const Engine a = node.StartEngine("a", Big(1));
  const Engine b = node.StartEngine("b", Big(1));
  node.Store(b, BlocksPrompt(9, 1));
  // 72 MiB without a claim, of 64 MiB allowed: nine pages that a stopped process may still write.
  const ReserveAnswer stuck = node.Reserve(a, BlocksPrompt(1, 9), node.now + 1);
  ASSERT_EQ(stuck.to, 9u);
  const BeginItem begun = node.Begin(a.scheduler, stuck.claim);
  node.Advance(1);
  EXPECT_EQ(node.status().quarantined_bytes, 72u << 20);
  EXPECT_EQ(node.Acquire(a, RequestId(1), BlocksPrompt(9, 1)).claim, ClaimId());
  const ReserveAnswer refused = node.Reserve(a, BlocksPrompt(2, 1));
  EXPECT_EQ(refused.claim, ClaimId());
  EXPECT_TRUE(refused.full);
  EXPECT_EQ(node.status().counters.quarantine_refused, 2u);
  EXPECT_NE(node.Acquire(b, RequestId(1), BlocksPrompt(9, 1)).claim, ClaimId())
      << "others are served";
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(begun)), Code::kUnknown);
  EXPECT_NE(node.Acquire(a, RequestId(2), BlocksPrompt(9, 1)).claim, ClaimId());
  node.KillEngine(a);
  node.KillEngine(b);
  node.ExpectBase();
}

TEST(DeathTest, APageThatManyHoldWithoutAClaimCountsOnce) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", Big(1));
  node.Store(a, BlocksPrompt(1, 4));
  std::vector<ClaimId> claims;
  for (uint64_t id = 1; id <= 9; ++id) {
    claims.push_back(node.Acquire(a, RequestId(id), BlocksPrompt(1, 4), node.now + 1).claim);
    node.Begin(a.scheduler, claims.back());
  }
  node.Advance(1);
  EXPECT_EQ(node.status().quarantined_bytes, 32u << 20);
  node.ExpectSound();
  EXPECT_NE(node.Acquire(a, RequestId(10), BlocksPrompt(1, 4)).claim, ClaimId()) << "of 64 MiB";
  for (ClaimId claim : claims) {
    EXPECT_EQ(node.status().quarantined_bytes, 32u << 20);
    node.End(a.scheduler, LoadEnd(claim));
  }
  EXPECT_EQ(node.status().quarantined_bytes, 0u);
  node.KillEngine(a);
  node.ExpectBase();
}

// FAULTS D4: what one process holds is given back in one step, so it is bounded.
TEST(DeathTest, AReplicaHoldsOnlySoManyPages) {
  CoreDriver node({.extents = 5});
  EngineOptions tiny;
  tiny.page_bytes = Bytes(1);
  tiny.block_tokens = 1;
  const Engine a = node.StartEngine("a", tiny);
  constexpr uint32_t kPages = 1u << 16;
  const auto prompt = [] { return PublicPrompt(Tokens(1, kPages + 1)); };
  ReserveRequest all;
  all.to = kPages;
  all.prompt = prompt();
  const auto reserved = BodyOf<ReserveAnswer>(node.Send(a.scheduler, std::move(all)));
  ASSERT_EQ(reserved.to, kPages);
  node.End(a.scheduler, StoreEnd(node.Begin(a.scheduler, reserved.claim)));
  constexpr uint64_t kHolds = limits::kPagesHeldPerReplica / kPages;
  std::vector<ClaimId> claims;
  for (uint64_t i = 0; i <= kHolds; ++i) {
    claims.push_back(node.Acquire(a, RequestId(1 + i), prompt()).claim);
    node.Settle(a, {.request = RequestId(1 + i)});
    EXPECT_EQ(node.Begin(a.scheduler, claims[i]).code, i < kHolds ? Code::kOk : Code::kUnavailable);
  }
  node.End(a.scheduler, LoadEnd(claims[0]));
  EXPECT_EQ(node.Begin(a.scheduler, claims[kHolds]).code, Code::kOk) << "there is room again";
  node.Advance(limits::kClaimLifeDefault);
  EXPECT_EQ(node.status().quarantined_bytes, kPages * kPageStrideMin.value()) << "each page once";
  node.KillEngine(a);
  node.ExpectBase();
}

TEST(DeathTest, TheCapGrowsWithTheSlab) {
  CoreDriver node({.extents = 3, .slab_bytes = Bytes(20 * (80ull << 20))});
  const Engine a = node.StartEngine("a", Big(1));
  const ReserveAnswer stuck = node.Reserve(a, BlocksPrompt(1, 9), node.now + 1);
  ASSERT_EQ(stuck.to, 9u);
  node.Begin(a.scheduler, stuck.claim);
  node.Advance(1);
  EXPECT_NE(node.Reserve(a, BlocksPrompt(2, 1)).claim, ClaimId()) << "72 of 80 MiB";
}

}  // namespace
}  // namespace pando::testing
