// The account: every request once, every token in exactly one column.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

using ::testing::HasSubstr;

// FAULTS F1, F3
TEST(LedgerTest, EachRequestIsCountedOnceWhenItIsSettled) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  EXPECT_EQ(node.LoadAndSettle(a, RequestId(1), BlocksPrompt(1, 4)), 0u);
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  EXPECT_EQ(node.status().account.requests, 1u) << "not before";
  node.Begin(a.scheduler, hit.claim);
  node.End(a.scheduler, LoadEnd(hit.claim));
  SettleRequest settle;
  settle.request = RequestId(1);
  settle.host = 4 * kBlock;
  settle.prefill_micros = 12;
  node.Settle(a, settle);
  const Answer twice = node.Send(a.scheduler, settle);
  EXPECT_EQ(twice.code, Code::kUnknown);
  EXPECT_THAT(twice.message, HasSubstr("settle each acquired request once"));
  const Account account = node.status().account;
  EXPECT_EQ(account.requests, 2u);
  EXPECT_EQ(account.prompt, 2 * (4 * kBlock + 1));
  EXPECT_EQ(account.hit_host, 4u * kBlock);
  EXPECT_EQ(account.computed, 4 * kBlock + 2);
  EXPECT_EQ(account.failed, 0u);
  node.ExpectBase();
}

// FAULTS C1, F3, F5, F6, G3: what cannot be true is computed or failed, never a hit, and never
// keeps the request open.
TEST(LedgerTest, NumbersThatCannotBeTrueAreCorrectedAndSaid) {
  struct Case {
    SettleRequest said;
    uint64_t engine, host, failed;  // counted; of 97 tokens, 32 the engine's, 64 loaded
  };
  constexpr uint64_t kMost = UINT64_MAX;
  constexpr RequestId kId(1);
  const Case cases[] = {
      {{.request = kId, .engine = 98}, 97, 0, 0},
      {{.request = kId, .host = 65}, 0, 64, 1},
      {{.request = kId, .device = 1, .disk = kMost}, 0, 0, 0},
      {{.request = kId, .host = 1, .peer = kMost}, 0, 64, 33},
      {{.request = kId, .engine = 32, .host = 33}, 32, 32, 1},
      {{.request = kId, .failed = kMost}, 0, 0, 97},
      {{.request = kId, .host = 64, .failed = 34}, 0, 64, 33},
      {{.request = kId, .engine = kMost, .host = kMost, .failed = kMost}, 97, 0, 0},
  };
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  Account before;
  for (const Case& c : cases) {
    AcquireRequest acquire{kId, BlocksPrompt(1, 6), 2 * kBlock};
    const auto hit = BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire));
    ASSERT_EQ(hit.blocks, 4u);
    node.Begin(a.scheduler, hit.claim);
    node.End(a.scheduler, LoadEnd(hit.claim));
    SettleRequest settle = c.said;
    const Answer answer = node.Send(a.scheduler, settle);
    EXPECT_EQ(answer.code, Code::kOk);
    EXPECT_THAT(answer.message, HasSubstr(std::to_string(c.host) + " from host or peer of 64"));
    const Account account = node.status().account;
    EXPECT_EQ(account.hit_engine - before.hit_engine, c.engine);
    EXPECT_EQ(account.hit_host - before.hit_host, c.host);
    EXPECT_EQ(account.failed - before.failed, c.failed);
    EXPECT_EQ(account.computed - before.computed, 97 - c.engine - c.host);
    before = account;
  }
  node.ExpectBase();
}

TEST(LedgerTest, WhatCanBeTrueIsCountedAsItIsSaid) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  AcquireRequest acquire{RequestId(1), BlocksPrompt(1, 6), 2 * kBlock};
  const auto hit = BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire));
  node.Begin(a.scheduler, hit.claim);
  node.End(a.scheduler, LoadEnd(hit.claim));
  SettleRequest settle{.request = RequestId(1), .engine = 32, .host = 32, .failed = 3};
  EXPECT_EQ(node.Send(a.scheduler, settle).message, "");
  const Account account = node.status().account;
  EXPECT_EQ(account.hit_engine, 32u);
  EXPECT_EQ(account.hit_host, 32u);
  EXPECT_EQ(account.computed, 33u);
  EXPECT_EQ(account.failed, 3u);
  node.ExpectBase();
}

// While a request waits for its turn, another one of its engine may compute its prefix.
TEST(LedgerTest, TheEnginesOwnHitMayGrowAfterTheAcquire) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  AcquireRequest acquire{RequestId(1), BlocksPrompt(1, 6), 0};
  const auto hit = BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire));
  node.Begin(a.scheduler, hit.claim);
  node.End(a.scheduler, LoadEnd(hit.claim));
  SettleRequest settle{.request = RequestId(1), .engine = 48, .host = 16};
  EXPECT_EQ(node.Send(a.scheduler, settle).message, "");
  EXPECT_EQ(node.status().account.hit_engine, 48u);
  EXPECT_EQ(node.status().account.hit_host, 16u);
  node.ExpectBase();
}

// FAULTS F1: what was preempted is counted when it was first done with, and not again.
TEST(LedgerTest, ARequestThatGoesOnIsNotCountedAgain) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  const Account before = node.status().account;
  AcquireRequest acquire{RequestId(7), BlocksPrompt(1, 6), 0};
  acquire.again = true;
  const auto hit = BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire));
  ASSERT_EQ(hit.blocks, 4u);
  node.Begin(a.scheduler, hit.claim);
  node.End(a.scheduler, LoadEnd(hit.claim));
  SettleRequest settle{.request = RequestId(7), .host = 64};
  EXPECT_EQ(node.Send(a.scheduler, settle).message, "");
  acquire.request = RequestId(8);
  acquire.prompt = BlocksPrompt(1, 6);
  const auto second = BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire));
  node.Begin(a.scheduler, second.claim);
  node.End(a.scheduler, LoadEnd(second.claim));
  EXPECT_EQ(node.status().account.prompt, before.prompt);
  EXPECT_EQ(node.status().account.requests, before.requests);
  settle.request = RequestId(8);
  node.Send(a.scheduler, settle);
  node.ExpectBase();
}

// FAULTS F6
TEST(LedgerTest, WhatIsLeasedIsNotLoaded) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  node.Begin(a.scheduler, hit.claim);
  SettleRequest settle{.request = RequestId(1), .host = kBlock};
  EXPECT_EQ(node.Send(a.scheduler, settle).code, Code::kOk);
  EXPECT_EQ(node.status().account.hit_host, 0u);
  EXPECT_EQ(node.status().account.failed, kBlock);
  node.End(a.scheduler, LoadEnd(hit.claim));
  node.ExpectBase();
}

TEST(LedgerTest, AnotherReplicasRequestIsNotSettled) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const Engine b = node.StartEngine("b");
  node.Acquire(a, RequestId(5), BlocksPrompt(1, 1));
  SettleRequest settle;
  settle.request = RequestId(5);
  EXPECT_EQ(node.Send(b.scheduler, settle).code, Code::kUnknown);
  node.Settle(a, settle);
  node.ExpectBase();
}

// FAULTS F1: the same name, used again, is another request.
TEST(LedgerTest, ALoadOfAnEarlierRequestOfTheSameNameCountsForNobody) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  node.Begin(a.scheduler, hit.claim);
  SettleRequest settle;
  settle.request = RequestId(1);
  node.Settle(a, settle);
  node.Acquire(a, RequestId(1), BlocksPrompt(2, 4));
  EXPECT_EQ(node.End(a.scheduler, LoadEnd(hit.claim)), Code::kOk);
  settle.host = kBlock;
  node.Settle(a, settle);
  EXPECT_EQ(node.status().account.hit_host, 0u);
  node.ExpectBase();
}

// FAULTS F1, F2, F6
TEST(LedgerTest, TheNodeSettlesWhatADeadReplicaLeftOpen) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer loaded = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  const AcquireAnswer partly = node.Acquire(a, RequestId(2), BlocksPrompt(1, 4));
  node.Acquire(a, RequestId(3), BlocksPrompt(2, 4));
  for (SessionId worker : a.workers) {
    node.Begin(worker, loaded.claim);
    node.End(worker, LoadEnd(loaded.claim));
  }
  node.Begin(a.workers[0], partly.claim);
  node.End(a.workers[0], LoadEnd(partly.claim));
  node.KillEngine(a);
  const Account account = node.status().account;
  EXPECT_EQ(account.requests, 3u);
  EXPECT_EQ(account.prompt, 3u * (4 * kBlock + 1));
  EXPECT_EQ(account.hit_host, 4u * kBlock);
  EXPECT_EQ(account.failed, 4u * kBlock);
  EXPECT_EQ(node.steps["settle.by_node"], 3u);
  node.ExpectBase();
}

// FAULTS F3
TEST(LedgerTest, SpacesSumToTheTotal) {
  CoreDriver node({.extents = 4});
  const Engine a = node.StartEngine("a");
  EngineOptions other;
  other.fields = {{"model", "n"}};
  const Engine b = node.StartEngine("b", other);
  node.Store(a, BlocksPrompt(1, 4));
  node.LoadAndSettle(a, RequestId(1), BlocksPrompt(1, 4));
  node.LoadAndSettle(b, RequestId(1), BlocksPrompt(1, 4));
  const CoreStatus status = node.status();
  ASSERT_EQ(status.spaces.size(), 2u);
  EXPECT_EQ(status.spaces[0].account.hit_host, 4u * kBlock);
  EXPECT_EQ(status.spaces[1].account.hit_host, 0u);
  EXPECT_EQ(status.spaces[0].account.prompt + status.spaces[1].account.prompt,
            status.account.prompt);
  node.ExpectBase();
}

// FAULTS F7: what the core hands out for labels is bounded by the spaces, never by requests.
TEST(LedgerTest, LogLinesOfServedRequestsNameNoRequest) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const size_t lines = node.logs.size();
  for (uint64_t id = 1; id <= 50; ++id) {
    node.Store(a, BlocksPrompt(static_cast<uint32_t>(id), 2));
    node.LoadAndSettle(a, RequestId(id), BlocksPrompt(static_cast<uint32_t>(id), 2));
  }
  EXPECT_EQ(node.logs.size(), lines) << "nothing was decided that is worth a line";
}

}  // namespace
}  // namespace pando::testing
