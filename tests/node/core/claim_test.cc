// Claims end at once and once; holds end only when their holder says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// FAULTS B2: stopped in mid-copy past every deadline, then continued.
TEST(ClaimTest, AWriterThatIsLateCommitsNothingAndKeepsItsPagesUntilItsEnd) {
  CoreDriver node;
  EngineOptions big;
  big.page_bytes = Bytes(8ull << 20);
  const Engine a = node.StartEngine("a", big);
  const Engine b = node.StartEngine("b", big);
  const ReserveAnswer stuck = node.Reserve(a, BlocksPrompt(1, 4), node.now + kSecond);
  const BeginItem begun = node.Begin(a.scheduler, stuck.claim);
  EXPECT_EQ(node.core().next_deadline(), node.now + kSecond);
  node.Advance(kSecond);
  EXPECT_EQ(node.core().next_deadline(), INT64_MAX);
  EXPECT_EQ(node.status().reservations, 0u);
  EXPECT_EQ(node.status().holds, 1u);
  EXPECT_EQ(node.status().pages.quarantined, 4u);
  EXPECT_EQ(node.status().quarantined_bytes, 4u * (8u << 20));
  EXPECT_EQ(node.status().counters.claims_expired, 1u);

  // The block's place is free at once, its old pages are not.
  const ReserveAnswer again = node.Reserve(b, BlocksPrompt(1, 4));
  EXPECT_EQ(again.to, 4u);
  const BeginItem fresh = node.Begin(b.scheduler, again.claim);
  for (PageId page : begun.pages)
    EXPECT_THAT(fresh.pages, ::testing::Not(::testing::Contains(page)));
  EXPECT_TRUE(node.Reserve(b, BlocksPrompt(2, 1)).full) << "quarantined pages go to nobody";
  EXPECT_EQ(node.End(b.scheduler, StoreEnd(fresh)), Code::kOk);

  node.Advance(3600 * kSecond);
  EXPECT_EQ(node.status().pages.quarantined, 4u) << "no deadline ends a hold";
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(begun)), Code::kUnknown);
  EXPECT_EQ(node.status().pages.quarantined, 0u);
  EXPECT_EQ(node.status().pages.free, 4u);
  const AcquireAnswer hit = node.Acquire(b, RequestId(1), BlocksPrompt(1, 4));
  EXPECT_EQ(node.Begin(b.scheduler, hit.claim).checksums, StoreEnd(fresh).checksums);
  node.KillEngine(b);
  node.ExpectBase();
}

// FAULTS B2
TEST(ClaimTest, PagesOfALoadThatIsOverStayUntilItsEnd) {
  CoreDriver node;
  EngineOptions big;
  big.page_bytes = Bytes(8ull << 20);
  const Engine a = node.StartEngine("a", big);
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4), node.now + kSecond);
  node.Begin(a.scheduler, hit.claim);
  node.Advance(2 * kSecond);
  EXPECT_EQ(node.status().leases, 0u);
  EXPECT_EQ(node.status().pages.held, 4u);
  EXPECT_TRUE(node.Reserve(a, BlocksPrompt(2, 5)).full) << "they are not evicted either";
  EXPECT_EQ(node.End(a.scheduler, LoadEnd(hit.claim)), Code::kOk);
  EXPECT_EQ(node.status().pages.held, 0u);
  EXPECT_EQ(node.Store(a, BlocksPrompt(2, 5)), 5u);
  SettleRequest settle;
  settle.request = RequestId(1);
  node.Settle(a, settle);
  node.ExpectBase();
}

// FAULTS F1, F6: what was read under a hold is right, also when the claim ended meanwhile; of two
// shards both must have read it.
TEST(ClaimTest, ALoadThatEndsAfterItsClaimIsAHitInAllShardsOrNone) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  node.Store(a, BlocksPrompt(1, 4));
  for (const uint64_t request : {1, 2}) {
    const AcquireAnswer hit =
        node.Acquire(a, RequestId(request), BlocksPrompt(1, 4), node.now + kSecond);
    const bool both = request == 1;
    node.Begin(a.workers[0], hit.claim);
    if (both) node.Begin(a.workers[1], hit.claim);
    node.Advance(2 * kSecond);
    EXPECT_EQ(node.End(a.workers[0], LoadEnd(hit.claim)), Code::kOk);
    if (both) {
      EXPECT_EQ(node.End(a.workers[1], LoadEnd(hit.claim, {3})), Code::kOk);
    }
    node.Settle(a, {.request = RequestId(request), .host = 3 * kBlock});
  }
  EXPECT_EQ(node.status().account.hit_host, 3u * kBlock) << "of the first";
  EXPECT_EQ(node.status().account.failed, kBlock + 3 * kBlock) << "its bad page; the second";
  node.ExpectBase();
}

// FAULTS C1, C10
TEST(ClaimTest, ALeaseThatNobodyBeginsEndsWithItsDeadline) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer standard = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  EXPECT_EQ(node.core().next_deadline(), node.now + limits::kClaimLifeDefault);
  const AcquireAnswer capped = node.Acquire(a, RequestId(2), BlocksPrompt(1, 4), INT64_MAX);
  node.Advance(limits::kClaimLifeDefault);
  EXPECT_EQ(node.status().leases, 1u);
  EXPECT_EQ(node.Begin(a.scheduler, standard.claim).code, Code::kUnknown);
  EXPECT_EQ(node.core().next_deadline(), kSecond + limits::kClaimLife);
  node.Advance(limits::kClaimLife);
  EXPECT_EQ(node.status().leases, 0u);
  EXPECT_EQ(node.Begin(a.scheduler, capped.claim).code, Code::kUnknown);
  EXPECT_EQ(node.status().requests, 2u) << "requests are not claims";
  for (uint64_t id : {1u, 2u}) {
    SettleRequest settle;
    settle.request = RequestId(id);
    node.Settle(a, settle);
  }
  EXPECT_EQ(node.status().account.failed, 0u) << "nothing was begun";
  node.ExpectBase();
}

TEST(ClaimTest, TimeDoesNotGoBack) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 2));
  node.Advance(10 * kSecond);
  node.Acquire(a, RequestId(1), BlocksPrompt(1, 2), node.now + kSecond);
  node.now -= 5 * kSecond;
  node.Input(Tick{});
  EXPECT_EQ(node.status().leases, 1u);
  EXPECT_EQ(node.Send(a.scheduler, ProbeRequest{BlocksPrompt(1, 2)}, node.now + kSecond).code,
            Code::kExpired);
}

// FAULTS C1, B2
// A prompt of more blocks than one Begin may name goes in parts, and no answer outgrows a frame.
TEST(ClaimTest, WhatOneBeginNamesHasALimit) {
  CoreDriver node({.extents = 40, .slab_bytes = Bytes(40 * kExtentBytes.value())});
  EngineOptions options;
  options.block_tokens = 1;
  const Engine a = node.StartEngine("a", options);
  const uint32_t blocks = limits::kPagesPerBegin + 10;
  ReserveRequest reserve;
  reserve.prompt = PublicPrompt(Tokens(1, blocks + 1));
  reserve.to = blocks;
  const auto first = BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve));
  const auto second = BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve));
  EXPECT_EQ(first.to, limits::kPagesPerBegin);
  EXPECT_EQ(second.from, first.to);
  EXPECT_EQ(second.to, blocks);
  auto both =
      BodyOf<BeginAnswer>(node.Send(a.scheduler, BeginRequest{{first.claim, second.claim}}));
  ASSERT_EQ(both.items.size(), 2u);
  EXPECT_EQ(both.items[0].pages.size(), limits::kPagesPerBegin);
  EXPECT_EQ(both.items[1].code, Code::kLimit);
  EXPECT_THAT(both.items[1].message, HasSubstr("10 pages of claim 2 found, at most 0 left"));
  EXPECT_TRUE(both.items[1].pages.empty());
  EXPECT_EQ(node.status().holds, 1u);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(both.items[0])), Code::kOk);
  const BeginItem rest = node.Begin(a.scheduler, second.claim);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(rest)), Code::kOk);
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), reserve.prompt);
  EXPECT_EQ(hit.blocks, limits::kPagesPerBegin);
  EXPECT_EQ(node.Send(a.scheduler, AbortRequest{{hit.claim}}).code, Code::kOk);
  node.Settle(a, {.request = RequestId(1)});
  node.ExpectBase();
}

TEST(ClaimTest, AnAbortOfNothingSaysSo) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const Answer none = node.Send(a.scheduler, AbortRequest{{ClaimId(77)}});
  EXPECT_EQ(none.code, Code::kUnknown);
  EXPECT_THAT(none.message, HasSubstr("none of 1 claims stands"));
  const ReserveAnswer one = node.Reserve(a, BlocksPrompt(1, 2));
  EXPECT_THAT(node.Send(a.scheduler, AbortRequest{{one.claim, ClaimId(77)}}).message,
              HasSubstr("1 of 2 claims had ended or never were this replica's: the others are"));
  node.ExpectBase();
}

TEST(ClaimTest, AbortBeforeAnyWorkerBeganGivesAllBackAtOnce) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  EXPECT_EQ(node.Send(a.scheduler, AbortRequest{{reserved.claim}}).code, Code::kOk);
  EXPECT_EQ(node.status().pages.reserved, 0u);
  EXPECT_EQ(node.Begin(a.workers[0], reserved.claim).code, Code::kUnknown);
  node.ExpectBase();
}

// FAULTS B2
TEST(ClaimTest, AbortWhileOneShardGathersLeavesItsPagesToIt) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  const BeginItem begun = node.Begin(a.workers[0], reserved.claim);
  EXPECT_EQ(node.Send(a.scheduler, AbortRequest{{reserved.claim}}).code, Code::kOk);
  EXPECT_EQ(node.status().pages.quarantined, 4u) << "shard 0 writes, shard 1 never began";
  EXPECT_EQ(node.status().pages.reserved, 0u);
  EXPECT_EQ(node.Begin(a.workers[1], reserved.claim).code, Code::kUnknown);
  node.ExpectSound();
  EXPECT_EQ(node.End(a.workers[0], StoreEnd(begun)), Code::kUnknown);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 4)).blocks, 0u);
  node.ExpectBase();
}

// FAULTS B2: one shard has committed, the other is late.
TEST(ClaimTest, OneShardDoneAndTheOtherLateIsNoBlock) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4), node.now + kSecond);
  const BeginItem first = node.Begin(a.workers[0], reserved.claim);
  const BeginItem second = node.Begin(a.workers[1], reserved.claim);
  EXPECT_EQ(node.End(a.workers[0], StoreEnd(first)), Code::kOk);
  node.Advance(kSecond);
  EXPECT_EQ(node.status().pages.quarantined, 4u) << "shard 1 still writes; shard 0's are free";
  EXPECT_EQ(node.status().pages.committed, 0u);
  EXPECT_EQ(node.End(a.workers[1], StoreEnd(second)), Code::kUnknown);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 4)).blocks, 0u);
  node.ExpectBase();
}

// FAULTS G3
TEST(ClaimTest, NobodyUsesAClaimTwiceOrAnothersOrAGuessedOne) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const Engine b = node.StartEngine("b", 2);
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  const ReserveAnswer place = node.Reserve(a, BlocksPrompt(2, 4));
  const CoreCounters before = node.status().counters;

  EXPECT_EQ(node.Begin(b.workers[0], hit.claim).code, Code::kUnknown) << "another's";
  EXPECT_EQ(node.Begin(a.workers[0], ClaimId(999)).code, Code::kUnknown) << "guessed";
  EXPECT_EQ(node.Begin(a.workers[0], ClaimId(0)).code, Code::kUnknown);
  EXPECT_EQ(node.End(a.workers[0], LoadEnd(hit.claim)), Code::kUnknown) << "End without Begin";
  EXPECT_EQ(node.End(a.workers[0], LoadEnd(place.claim)), Code::kUnknown) << "commit without it";
  const BeginItem begun = node.Begin(a.workers[0], hit.claim);
  EXPECT_EQ(begun.code, Code::kOk);
  const BeginItem twice = node.Begin(a.workers[0], hit.claim);
  EXPECT_EQ(twice.code, Code::kUnknown);
  EXPECT_THAT(twice.message, HasSubstr("begin a claim once"));
  EXPECT_EQ(node.End(b.workers[0], LoadEnd(hit.claim)), Code::kUnknown) << "release of another's";
  EXPECT_EQ(node.End(a.workers[1], LoadEnd(hit.claim)), Code::kUnknown) << "another shard's";
  EXPECT_EQ(node.status().holds, 1u);
  EXPECT_EQ(node.End(a.workers[0], LoadEnd(hit.claim)), Code::kOk);
  EXPECT_EQ(node.End(a.workers[0], LoadEnd(hit.claim)), Code::kUnknown) << "double End";
  EXPECT_EQ(node.Begin(a.workers[0], hit.claim).code, Code::kUnknown) << "after its End";
  EXPECT_EQ(node.status().leases, 1u) << "shard 1 has not ended";

  const Answer foreign = node.Send(b.scheduler, AbortRequest{{hit.claim, place.claim}});
  EXPECT_EQ(foreign.code, Code::kUnknown);
  EXPECT_THAT(foreign.message, HasSubstr("none of 2"));
  EXPECT_EQ(node.status().leases, 1u);
  EXPECT_EQ(node.status().reservations, 1u);
  EXPECT_EQ(node.status().counters.requests_refused.total(), before.requests_refused.total() + 11);
  node.KillEngine(a);
  node.KillEngine(b);
  node.ExpectBase();
}

// FAULTS G2, G3
TEST(ClaimTest, AMalformedEndChangesNothing) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const ReserveAnswer one = node.Reserve(a, BlocksPrompt(1, 4));
  const ReserveAnswer two = node.Reserve(a, BlocksPrompt(2, 4));
  const BeginItem good = node.Begin(a.scheduler, one.claim);
  const BeginItem bad = node.Begin(a.scheduler, two.claim);
  EndItem few = StoreEnd(bad);
  few.checksums.pop_back();
  const Answer short_one = node.Send(a.scheduler, EndRequest{{StoreEnd(good), few}});
  EXPECT_EQ(short_one.code, Code::kInvalid);
  EXPECT_THAT(short_one.message, AllOf(HasSubstr("3 checksums"), HasSubstr("4 allowed")));
  EndItem outside = StoreEnd(bad);
  outside.bad_pages = {4};
  EXPECT_EQ(node.Send(a.scheduler, EndRequest{{outside}}).code, Code::kInvalid);
  EXPECT_EQ(node.status().holds, 2u);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 4)).blocks, 0u);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(good)), Code::kOk);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(bad)), Code::kOk);
  node.ExpectBase();
}

TEST(ClaimTest, OneMessageMayCarryManyAndNotTooMany) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer one = node.Reserve(a, BlocksPrompt(1, 2));
  const ReserveAnswer two = node.Reserve(a, BlocksPrompt(2, 3));
  for (SessionId worker : a.workers) {
    const auto begun =
        BodyOf<BeginAnswer>(node.Send(worker, BeginRequest{{one.claim, ClaimId(77), two.claim}}));
    ASSERT_EQ(begun.items.size(), 3u);
    EXPECT_EQ(begun.items[1].code, Code::kUnknown);
    const auto ended = BodyOf<EndAnswer>(
        node.Send(worker, EndRequest{{StoreEnd(begun.items[2]), StoreEnd(begun.items[0])}}));
    EXPECT_THAT(ended.codes, ::testing::ElementsAre(Code::kOk, Code::kOk));
  }
  EXPECT_EQ(node.Probe(a, BlocksPrompt(2, 3)).blocks, 3u);
  const std::vector<ClaimId> many(limits::kClaimsPerMessage + 1, ClaimId(1));
  EXPECT_EQ(node.Send(a.workers[0], BeginRequest{many}).code, Code::kLimit);
  EXPECT_EQ(node.Send(a.scheduler, AbortRequest{many}).code, Code::kLimit);
  EXPECT_EQ(node.Send(a.scheduler, BeginRequest{{one.claim}}).code, Code::kInvalid);
  EXPECT_EQ(node.Send(a.workers[0], AbortRequest{{one.claim}}).code, Code::kInvalid);
  node.ExpectBase();
}

TEST(ClaimTest, AReplicaHasALimitOfClaims) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 1));
  uint64_t id = 0;
  while (node.status().leases < limits::kClaimsPerReplica) {
    node.Acquire(a, RequestId(++id), BlocksPrompt(1, 1));
  }
  const Answer over = node.Send(a.scheduler, AcquireRequest{RequestId(++id), BlocksPrompt(1, 1)});
  EXPECT_EQ(over.code, Code::kLimit);
  EXPECT_THAT(over.message, HasSubstr("8193 claims found, at most 8192"));
  node.KillEngine(a);
  node.ExpectBase();
}

// The message's own deadline: what it says is true however late, what it asks for is not done.
TEST(ClaimTest, AnEndPastItsDeadlineGivesBackAndCommitsNothing) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  const BeginItem begun = node.Begin(a.scheduler, reserved.claim);
  EXPECT_EQ(node.Send(a.scheduler, EndRequest{{StoreEnd(begun)}}, node.now).code, Code::kExpired);
  EXPECT_EQ(node.status().holds, 0u);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 4)).blocks, 0u);
  node.ExpectBase();
}

// FAULTS D3
TEST(ClaimTest, ASessionThatIsIdleForAMonthIsNotDead) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  node.Store(a, BlocksPrompt(1, 4));
  node.Advance(30 * 86'400 * kSecond);
  EXPECT_EQ(node.LoadAndSettle(a, RequestId(1), BlocksPrompt(1, 4)), 4u);
  EXPECT_TRUE(node.closes.empty());
}

// FAULTS D2, G3: what a scheduler was given by a node that has been restarted since.
TEST(ClaimTest, AClaimOfAnotherLifeIsUnknown) {
  CoreDriver before({.first_claim = ClaimId(1ull << 40)});
  CoreDriver after({.first_claim = ClaimId(1ull << 50)});
  const Engine a = before.StartEngine("a");
  const Engine again = after.StartEngine("a");
  before.Store(a, BlocksPrompt(1, 4));
  after.Store(again, BlocksPrompt(2, 4));
  const AcquireAnswer old = before.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  const ReserveAnswer unwritten = before.Reserve(a, BlocksPrompt(3, 4));
  after.Acquire(again, RequestId(1), BlocksPrompt(2, 4));
  after.Reserve(again, BlocksPrompt(4, 4));
  EXPECT_EQ(after.Begin(again.scheduler, old.claim).code, Code::kUnknown);
  EXPECT_EQ(after.Begin(again.scheduler, unwritten.claim).code, Code::kUnknown);
  EXPECT_EQ(after.status().holds, 0u);
}

}  // namespace
}  // namespace pando::testing
