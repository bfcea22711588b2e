// Tickets: one replica computes, the others wait for it instead of computing it too (FAULTS E7),
// and every way in which that ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/core/limits.h"
#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kBlocks = 8;
constexpr Nanos kMilli = 1'000'000;

class TicketTest : public ::testing::Test {
 protected:
  PromptData Prompt() const { return BlocksPrompt(1, kBlocks); }
  // `a` says that it computes the prompt.
  void Compute(const Engine& engine, RequestId request) {
    const AcquireAnswer answer = node.Acquire(engine, request, Prompt(), 0, true);
    EXPECT_EQ(answer.ticket, 0u) << "nobody else was computing";
  }
  AcquireAnswer Want(const Engine& engine, RequestId request, bool compute = true) {
    AcquireAnswer answer = node.Acquire(engine, request, Prompt(), 0, compute);
    EXPECT_TRUE(answer.in_flight);
    EXPECT_NE(answer.ticket, 0u);
    return answer;
  }
  // `engine` stores blocks up to `to` of its open request.
  void StoreUpTo(const Engine& engine, RequestId request, uint32_t to) {
    const auto reserved = BodyOf<ReserveAnswer>(
        node.Send(engine.scheduler, ReserveRequest{request, {}, {}, 0, to, 0}));
    for (const SessionId worker : engine.workers) {
      EXPECT_EQ(node.End(worker, StoreEnd(node.Begin(worker, reserved.claim))), Code::kOk);
    }
  }
  bool Answered(uint64_t serial) const { return node.awaited.contains(serial); }
  AwaitAnswer AnswerTo(uint64_t serial) {
    EXPECT_TRUE(Answered(serial));
    return BodyOf<AwaitAnswer>(node.awaited[serial]);
  }
  void Load(const Engine& engine, ClaimId claim) {
    for (const SessionId worker : engine.workers) {
      node.Begin(worker, claim);
      EXPECT_EQ(node.End(worker, LoadEnd(claim)), Code::kOk);
    }
  }
  void Settle(const Engine& engine, RequestId request, uint64_t host = 0) {
    SettleRequest settle;
    settle.request = request;
    settle.host = host;
    node.Settle(engine, settle);
  }

  CoreDriver node;
  const Engine a = node.StartEngine("a"), b = node.StartEngine("b"), c = node.StartEngine("c");
};

TEST_F(TicketTest, WaitersGetWhatWasComputedOnceAllOfItIsThere) {
  Compute(a, RequestId(1));
  const AcquireAnswer want = Want(b, RequestId(1));
  EXPECT_EQ(want.blocks, 0u);
  const uint64_t wait = node.Await(b, want.ticket, node.now + kSecond);
  StoreUpTo(a, RequestId(1), 3);  // a chunk; the rest is still being computed
  EXPECT_FALSE(Answered(wait));
  EXPECT_EQ(node.status().tickets, 1u);
  StoreUpTo(a, RequestId(1), kBlocks);
  const AwaitAnswer got = AnswerTo(wait);
  EXPECT_EQ(got.blocks, kBlocks);
  EXPECT_FALSE(got.in_flight);
  Load(b, got.claim);
  Settle(b, RequestId(1), kBlocks * kBlock);
  Settle(a, RequestId(1));
  node.ExpectBase();
  EXPECT_EQ(node.status().account.hit_host, kBlocks * kBlock);
}

TEST_F(TicketTest, WhatLeavesARunInItsMiddleIsWaitedForToo) {
  PromptData other = Prompt();
  for (size_t i = 3 * kBlock; i < other.tokens.size(); ++i) other.tokens[i] += 1'000'000;
  EXPECT_EQ(node.Store(a, other), kBlocks);
  const AcquireAnswer mine = node.Acquire(a, RequestId(1), Prompt(), 0, true);
  EXPECT_EQ(mine.blocks, 3u);
  Load(a, mine.claim);
  const AcquireAnswer want = Want(b, RequestId(1));
  EXPECT_EQ(want.blocks, 3u);
  const uint64_t wait = node.Await(b, want.ticket, node.now + kSecond);
  StoreUpTo(a, RequestId(1), kBlocks);
  EXPECT_EQ(AnswerTo(wait).blocks, kBlocks);
  Load(b, AnswerTo(wait).claim);
  Settle(b, RequestId(1), kBlocks * kBlock);
  Settle(a, RequestId(1));
  node.ExpectBase();
}

TEST_F(TicketTest, AnAwaitThatComesLateIsAnsweredAtOnce) {
  Compute(a, RequestId(1));
  const AcquireAnswer want = Want(b, RequestId(1));
  StoreUpTo(a, RequestId(1), kBlocks);
  EXPECT_EQ(AnswerTo(node.Await(b, want.ticket, node.now + kSecond)).blocks, kBlocks);
  const uint64_t again = node.Await(b, want.ticket, node.now + kSecond);
  EXPECT_EQ(node.awaited[again].code, Code::kUnknown) << "its answer said that it was over";
}

TEST_F(TicketTest, WhenItsTimeComesAWaiterTakesWhatThereIsAndMayWaitOn) {
  Compute(a, RequestId(1));
  const AcquireAnswer want = Want(b, RequestId(1));
  const uint64_t wait = node.Await(b, want.ticket, node.now + 5 * kMilli);
  StoreUpTo(a, RequestId(1), 3);
  node.Advance(5 * kMilli - 1);
  EXPECT_FALSE(Answered(wait));
  EXPECT_EQ(node.core().next_deadline(), node.now + 1);
  node.Advance(1);
  const AwaitAnswer some = AnswerTo(wait);
  EXPECT_EQ(some.blocks, 3u);
  EXPECT_TRUE(some.in_flight);
  const uint64_t on = node.Await(b, want.ticket, node.now + kSecond);
  StoreUpTo(a, RequestId(1), kBlocks);
  const AwaitAnswer all = AnswerTo(on);
  EXPECT_EQ(all.blocks, kBlocks);
  EXPECT_EQ(node.status().leases, 1u) << "the first one was not begun and is over";
  Load(b, all.claim);
  Settle(b, RequestId(1), kBlocks * kBlock);
  Settle(a, RequestId(1));
  node.ExpectBase();
}

// FAULTS B2: a shard loads by the acquire's claim already, the other one will.
TEST_F(TicketTest, AClaimThatAWorkerHasBegunStandsBesideTheNewOne) {
  const Engine two = node.StartEngine("two", 2), maker = node.StartEngine("maker", 2);
  Compute(maker, RequestId(1));
  StoreUpTo(maker, RequestId(1), 2);
  const AcquireAnswer want = Want(two, RequestId(1));
  EXPECT_EQ(want.blocks, 2u);
  EXPECT_EQ(node.Begin(two.workers[0], want.claim).code, Code::kOk);
  const uint64_t wait = node.Await(two, want.ticket, node.now + kSecond);
  StoreUpTo(maker, RequestId(1), kBlocks);
  EXPECT_EQ(AnswerTo(wait).blocks, kBlocks);
  EXPECT_EQ(node.Begin(two.workers[1], want.claim).code, Code::kOk);
  for (const SessionId worker : two.workers) node.End(worker, LoadEnd(want.claim));
  Load(two, AnswerTo(wait).claim);
  Settle(two, RequestId(1), kBlocks * kBlock);
  Settle(maker, RequestId(1));
  node.ExpectBase();
}

TEST_F(TicketTest, WithNothingMoreTheAcquiresClaimStands) {
  node.Store(c, BlocksPrompt(1, 2));
  Compute(a, RequestId(1));
  const AcquireAnswer want = Want(b, RequestId(1));
  EXPECT_EQ(want.blocks, 2u);
  const uint64_t wait = node.Await(b, want.ticket, node.now + kMilli);
  node.Advance(kMilli);
  const AwaitAnswer nothing = AnswerTo(wait);
  EXPECT_EQ(nothing.claim, ClaimId());
  EXPECT_EQ(nothing.blocks, 2u);
  Load(b, want.claim);
}

// The one who computed has gone: waiters wake, the first one computes, the others wait for him.
TEST_F(TicketTest, DeathOfTheOneWhoComputesWakesTheWaiters) {
  Compute(a, RequestId(1));
  const AcquireAnswer first = Want(b, RequestId(1)), second = Want(c, RequestId(1));
  const uint64_t one = node.Await(b, first.ticket, node.now + kSecond);
  const uint64_t two = node.Await(c, second.ticket, node.now + kSecond);
  node.KillEngine(a);
  EXPECT_EQ(AnswerTo(one).blocks, 0u);
  EXPECT_FALSE(AnswerTo(one).in_flight);
  EXPECT_FALSE(Answered(two)) << "b computes it now";
  StoreUpTo(b, RequestId(1), kBlocks);
  EXPECT_EQ(AnswerTo(two).blocks, kBlocks);
}

TEST_F(TicketTest, ALookerIsNotTakenForOneWhoComputes) {
  Compute(a, RequestId(1));
  const AcquireAnswer first = Want(b, RequestId(1), false), second = Want(c, RequestId(1), false);
  const uint64_t one = node.Await(b, first.ticket, node.now + kSecond);
  const uint64_t two = node.Await(c, second.ticket, node.now + kSecond);
  node.KillEngine(a);
  EXPECT_FALSE(AnswerTo(one).in_flight);
  EXPECT_FALSE(AnswerTo(two).in_flight);
}

TEST_F(TicketTest, AStoreThatFailsOrFindsNoRoomOrASettledRequestWakesTheWaiters) {
  Compute(a, RequestId(1));
  uint64_t wait = node.Await(b, Want(b, RequestId(1)).ticket, node.now + kSecond);
  const auto reserved = BodyOf<ReserveAnswer>(
      node.Send(a.scheduler, ReserveRequest{RequestId(1), {}, {}, 0, kBlocks, 0}));
  node.Begin(a.scheduler, reserved.claim);
  EndItem failed;
  failed.claim = reserved.claim;
  failed.failed = true;
  node.End(a.scheduler, failed);
  EXPECT_FALSE(AnswerTo(wait).in_flight);
  Settle(a, RequestId(1));
  Settle(b, RequestId(1));

  Compute(a, RequestId(2));
  wait = node.Await(b, Want(b, RequestId(2)).ticket, node.now + kSecond);
  Settle(a, RequestId(2));
  EXPECT_FALSE(AnswerTo(wait).in_flight);
  Settle(b, RequestId(2));
  node.ExpectBase();
}

TEST_F(TicketTest, AComputationIsBelievedForTwiceItsEstimate) {
  EngineOptions options;
  options.prefill_tokens_per_s = 100;
  const Engine slow = node.StartEngine("slow", options);
  Compute(slow, RequestId(1));
  const uint64_t wait = node.Await(b, Want(b, RequestId(1)).ticket, node.now + 20 * kSecond);
  const Nanos estimate = kBlocks * kBlock * kSecond / 100;
  node.Advance(2 * estimate - 1);
  EXPECT_FALSE(Answered(wait));
  node.Advance(1);
  EXPECT_FALSE(AnswerTo(wait).in_flight);
}

// It had said that it computes, and asks again: for another request, or anew after a preemption.
// FAULTS D4: what is announced is bounded, for all together; the rest is computed all the same.
TEST_F(TicketTest, BeyondTheLimitNothingIsAnnounced) {
  constexpr uint32_t kMany = limits::kBlocksComputing * 2 / 3;  // of one token
  EngineOptions small;
  small.block_tokens = 1;
  const Engine d = node.StartEngine("d", small), e = node.StartEngine("e", small);
  std::vector<PromptData> prompts;
  for (uint32_t i = 1; i <= 3; ++i) prompts.push_back(BlocksPrompt(i, kMany / kBlock));
  for (uint64_t i = 0; i < 3; ++i) node.Acquire(d, RequestId(i + 1), prompts[i], 0, true);
  EXPECT_NE(node.Acquire(e, RequestId(1), prompts[0], 0, true).ticket, 0u);
  EXPECT_NE(node.Acquire(e, RequestId(2), prompts[1], 0, true).ticket, 0u) << "its first part";
  EXPECT_EQ(node.Acquire(e, RequestId(3), prompts[2]).ticket, 0u);
  for (uint64_t i = 1; i <= 3; ++i) {
    Settle(d, RequestId(i));
    Settle(e, RequestId(i));
  }
  node.Acquire(d, RequestId(4), prompts[2], 0, true);
  EXPECT_NE(node.Acquire(e, RequestId(4), prompts[2], 0, true).ticket, 0u) << "there is room again";
}

TEST_F(TicketTest, NobodyWaitsForItself) {
  Compute(a, RequestId(1));
  Compute(a, RequestId(2));
  const auto reserved = BodyOf<ReserveAnswer>(
      node.Send(a.scheduler, ReserveRequest{RequestId(1), {}, {}, 0, kBlocks, 0}));
  EXPECT_NE(reserved.claim, ClaimId());
  EXPECT_EQ(node.Acquire(a, RequestId(3), Prompt(), 0, true).ticket, 0u);
}

TEST_F(TicketTest, AWriterWithoutAComputationIsWaitedForToo) {
  const ReserveAnswer reserved = node.Reserve(a, Prompt());
  const uint64_t wait = node.Await(b, Want(b, RequestId(1)).ticket, node.now + kSecond);
  node.End(a.scheduler, StoreEnd(node.Begin(a.scheduler, reserved.claim)));
  EXPECT_EQ(AnswerTo(wait).blocks, kBlocks);
}

TEST_F(TicketTest, ATicketEndsWithItsRequestItsReplicaAndItsDeadline) {
  Compute(a, RequestId(1));
  uint64_t wait = node.Await(b, Want(b, RequestId(1)).ticket, node.now + kSecond);
  Settle(b, RequestId(1));
  EXPECT_EQ(node.awaited[wait].code, Code::kUnknown);
  EXPECT_THAT(node.awaited[wait].message, HasSubstr("settled"));

  node.Await(b, Want(b, RequestId(2)).ticket, node.now + kSecond);
  node.KillEngine(b);
  EXPECT_EQ(node.status().tickets, 0u);

  const AcquireAnswer brief = node.Acquire(c, RequestId(1), Prompt(), node.now + kMilli, true);
  wait = node.Await(c, brief.ticket, node.now + kSecond);
  node.Advance(kMilli);
  EXPECT_FALSE(AnswerTo(wait).in_flight);
  EXPECT_EQ(node.status().tickets, 0u);
}

TEST_F(TicketTest, ADrainAnswersAllWhoWait) {
  Compute(a, RequestId(1));
  const uint64_t wait = node.Await(b, Want(b, RequestId(1)).ticket, node.now + kSecond);
  node.Input(DrainRequested{});
  EXPECT_FALSE(AnswerTo(wait).in_flight);
  EXPECT_EQ(node.status().tickets, 0u);
}

// FAULTS G3
TEST_F(TicketTest, TicketsAreTheirReplicasAlone) {
  Compute(a, RequestId(1));
  const AcquireAnswer want = Want(b, RequestId(1));
  EXPECT_EQ(node.awaited[node.Await(c, want.ticket, node.now + kSecond)].code, Code::kUnknown);
  EXPECT_EQ(node.awaited[node.Await(b, want.ticket + 1, node.now + kSecond)].code, Code::kUnknown);
  const uint64_t wait = node.Await(b, want.ticket, node.now + kSecond);
  EXPECT_EQ(node.awaited[node.Await(b, want.ticket, node.now + kSecond)].code, Code::kInvalid);
  EXPECT_FALSE(Answered(wait)) << "the one before goes on";
}

}  // namespace
}  // namespace pando::testing
