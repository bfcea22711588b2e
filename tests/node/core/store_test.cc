// Reserve, begin, end: how pages come into the cache, and what never does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr Bytes kBigPage{8ull << 20};  // eight of them fill an extent

Engine StartBig(CoreDriver* node, const std::string& key, uint32_t shards = 1) {
  EngineOptions options;
  options.page_bytes = kBigPage;
  options.shards = shards;
  return node->StartEngine(key, options);
}

// FAULTS B1
TEST(StoreTest, PagesAreInvisibleUntilTheyAreCommitted) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const Engine b = node.StartEngine("b");
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  EXPECT_EQ(reserved.from, 0u);
  EXPECT_EQ(reserved.to, 4u);
  const ProbeAnswer before = node.Probe(b, BlocksPrompt(1, 4));
  EXPECT_EQ(before.blocks, 0u);
  EXPECT_TRUE(before.in_flight);
  const BeginItem begun = node.Begin(a.scheduler, reserved.claim);
  EXPECT_EQ(begun.pages.size(), 4u);
  EXPECT_TRUE(begun.checksums.empty());
  EXPECT_EQ(node.Probe(b, BlocksPrompt(1, 4)).blocks, 0u);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(begun)), Code::kOk);
  const ProbeAnswer after = node.Probe(b, BlocksPrompt(1, 4));
  EXPECT_EQ(after.blocks, 4u);
  EXPECT_FALSE(after.in_flight);
  EXPECT_EQ(node.status().pages.committed, 4u);
  EXPECT_EQ(node.status().counters.pages_stored, 4u);
  node.ExpectBase();
}

// FAULTS B5
TEST(StoreTest, ABlockIsCompleteOnlyWithAllItsShards) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 3));
  const BeginItem first = node.Begin(a.workers[0], reserved.claim);
  const BeginItem second = node.Begin(a.workers[1], reserved.claim);
  for (PageId page : first.pages)
    EXPECT_THAT(second.pages, ::testing::Not(::testing::Contains(page)));
  EXPECT_EQ(node.End(a.workers[1], StoreEnd(second)), Code::kOk);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 3)).blocks, 0u);
  EXPECT_EQ(node.status().reservations, 1u);
  EXPECT_EQ(node.End(a.workers[0], StoreEnd(first)), Code::kOk);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 3)).blocks, 3u);
  node.ExpectBase();
}

TEST(StoreTest, TheAnswerToALoadBringsWhatTheStoreSaid) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 3));
  const BeginItem stored = node.Begin(a.scheduler, reserved.claim);
  const EndItem end = StoreEnd(stored);
  EXPECT_EQ(node.End(a.scheduler, end), Code::kOk);
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 3));
  const BeginItem loaded = node.Begin(a.scheduler, hit.claim);
  EXPECT_EQ(loaded.pages, stored.pages);
  EXPECT_EQ(loaded.generations, stored.generations);
  EXPECT_EQ(loaded.checksums, end.checksums);
  EXPECT_EQ(loaded.page_bytes, Bytes(4096));
  EXPECT_FALSE(loaded.store);
}

// FAULTS B6
TEST(StoreTest, AStoreThatFailedLeavesNothing) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  node.Begin(a.scheduler, reserved.claim);
  EndItem failed;
  failed.claim = reserved.claim;
  failed.failed = true;
  EXPECT_EQ(node.End(a.scheduler, failed), Code::kOk);
  const ProbeAnswer after = node.Probe(a, BlocksPrompt(1, 4));
  EXPECT_EQ(after.blocks, 0u);
  EXPECT_FALSE(after.in_flight);
  EXPECT_EQ(node.status().pages.committed, 0u);
  node.ExpectBase();
  EXPECT_EQ(node.Store(a, BlocksPrompt(1, 4)), 4u) << "and can be stored again";
}

// FAULTS B6
TEST(StoreTest, AnUnwrittenPageTakesAllBelowItAlong) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 6));
  const BeginItem first = node.Begin(a.workers[0], reserved.claim);
  const BeginItem second = node.Begin(a.workers[1], reserved.claim);
  EndItem partly = StoreEnd(first);
  partly.bad_pages = {4, 2};
  EXPECT_EQ(node.End(a.workers[0], partly), Code::kOk);
  node.ExpectSound();
  EXPECT_EQ(node.End(a.workers[1], StoreEnd(second)), Code::kOk);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 6)).blocks, 2u);
  node.ExpectBase();
  EXPECT_EQ(node.Store(a, BlocksPrompt(1, 6)), 4u) << "only what is missing";
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 6)).blocks, 6u);
}

TEST(StoreTest, AShardThatBeginsAfterItsPagesHaveGoneIsTold) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(1, 4));
  node.Begin(a.workers[0], reserved.claim);
  EndItem failed;
  failed.claim = reserved.claim;
  failed.failed = true;
  EXPECT_EQ(node.End(a.workers[0], failed), Code::kOk);
  const BeginItem late = node.Begin(a.workers[1], reserved.claim);
  EXPECT_EQ(late.code, Code::kUnknown);
  EXPECT_TRUE(late.pages.empty());
  EXPECT_EQ(node.status().reservations, 0u) << "nobody is left to end it";
  node.ExpectBase();
}

TEST(StoreTest, WhatIsThereOrComingIsNotStoredTwice) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const Engine b = node.StartEngine("b");
  const ReserveAnswer first = node.Reserve(a, BlocksPrompt(1, 4));
  const ReserveAnswer other = node.Reserve(b, BlocksPrompt(1, 6));
  EXPECT_EQ(other.claim, ClaimId());
  EXPECT_TRUE(other.in_flight);
  const ReserveAnswer own = node.Reserve(a, BlocksPrompt(1, 6));
  EXPECT_EQ(own.from, 4u) << "one's own writing counts as there";
  EXPECT_EQ(own.to, 6u);
  for (ClaimId claim : {first.claim, own.claim}) {
    EXPECT_EQ(node.End(a.scheduler, StoreEnd(node.Begin(a.scheduler, claim))), Code::kOk);
  }
  const ReserveAnswer again = node.Reserve(b, BlocksPrompt(1, 6));
  EXPECT_EQ(again.claim, ClaimId());
  EXPECT_FALSE(again.in_flight || again.full);
  EXPECT_EQ(node.status().counters.reserve_in_flight, 1u);
  EXPECT_EQ(node.LoadAndSettle(b, RequestId(1), BlocksPrompt(1, 6)), 6u);
  node.ExpectBase();
}

// Whatever became of the claim: what a shard had begun to write and did not commit.
TEST(StoreTest, PagesGivenUpAreAllThatWereBegunAndNotCommitted) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const auto begin = [&](uint32_t seed) {
    const ReserveAnswer reserved = node.Reserve(a, BlocksPrompt(seed, 4), node.now + 9 * kSecond);
    return node.Begin(a.workers[0], reserved.claim);
  };
  const auto given_up = [&] { return node.status().counters.pages_given_up; };
  const BeginItem expired = begin(1);
  node.Advance(9 * kSecond);
  node.End(a.workers[0], StoreEnd(expired));
  EXPECT_EQ(given_up(), 4u);
  const BeginItem aborted = begin(2);
  node.Send(a.scheduler, AbortRequest{{aborted.claim}});
  node.End(a.workers[0], StoreEnd(aborted));
  EXPECT_EQ(given_up(), 8u);
  const BeginItem late = begin(3);
  node.Send(a.workers[0], EndRequest{{StoreEnd(late)}}, node.now);
  EXPECT_EQ(given_up(), 12u);
  begin(4);
  node.Kill(a.workers[0]);
  EXPECT_EQ(given_up(), 16u);
  EXPECT_EQ(node.status().counters.pages_stored, 0u);
}

// FAULTS C8, D5
TEST(StoreTest, AFullPoolIsAnAnswerAndIsSaidOnce) {
  CoreDriver node;
  const Engine a = StartBig(&node, "a");
  const ReserveAnswer half = node.Reserve(a, BlocksPrompt(1, 5));
  EXPECT_EQ(half.to, 5u);
  for (uint32_t seed = 2; seed < 5; ++seed) {
    const ReserveAnswer full = node.Reserve(a, BlocksPrompt(seed, 4));
    EXPECT_TRUE(full.full) << "all or nothing: three pages are free";
    EXPECT_EQ(full.claim, ClaimId());
    EXPECT_EQ(full.from, full.to);
  }
  EXPECT_EQ(node.status().counters.reserve_full, 3u);
  EXPECT_EQ(node.Logged("space.full").size(), 1u);
  EXPECT_EQ(node.status().pages.free, 3u) << "nothing is held while nothing was got";
  EXPECT_EQ(node.Reserve(a, BlocksPrompt(2, 3)).to, 3u);
  EXPECT_TRUE(node.Reserve(a, BlocksPrompt(3, 1)).full);
  EXPECT_EQ(node.Logged("space.full").size(), 1u) << "what fits and what does not come in turn";
  node.Advance(60 * kSecond);
  EXPECT_TRUE(node.Reserve(a, BlocksPrompt(3, 9)).full);
  const std::vector<LogLine> said = node.Logged("space.full");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0].fields, Contains(Pair("hint", HasSubstr("its pages are claimed"))));
  EXPECT_THAT(said[1].fields, Contains(Pair("hint", HasSubstr("larger than the slab"))));
  node.ExpectSound();
  node.KillEngine(a);
  node.ExpectBase();
}

// FAULTS C7
TEST(StoreTest, EvictsWhatIsNeededAndNothingThatIsInUse) {
  CoreDriver node;
  const Engine a = StartBig(&node, "a");
  EXPECT_EQ(node.Store(a, BlocksPrompt(1, 4)), 4u);
  EXPECT_EQ(node.Store(a, BlocksPrompt(2, 4)), 4u);
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  EXPECT_EQ(hit.blocks, 4u);
  node.Advance(kSecond);
  EXPECT_EQ(node.Store(a, BlocksPrompt(3, 2)), 2u);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(2, 4)).blocks, 2u) << "the other one's tail went";
  EXPECT_TRUE(node.Reserve(a, BlocksPrompt(4, 5)).full) << "the lease is not evicted";
  EXPECT_EQ(node.Begin(a.scheduler, hit.claim).code, Code::kOk);
  EXPECT_EQ(node.End(a.scheduler, LoadEnd(hit.claim)), Code::kOk);
  EXPECT_EQ(node.Store(a, BlocksPrompt(4, 5)), 5u);
  node.KillEngine(a);
  node.ExpectBase();
}

TEST(StoreTest, AnOpenRequestGrowsByWhatIsDecoded) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const std::vector<uint32_t> all = Tokens(1, 4 * kBlock);
  const std::vector<uint32_t> prompt(all.begin(), all.begin() + 20);
  node.Acquire(a, RequestId(7), PublicPrompt(prompt));
  ReserveRequest reserve;
  reserve.request = RequestId(7);
  reserve.append_tokens.assign(all.begin() + 20, all.begin() + 30);
  reserve.to = 1;
  const auto first = BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve));
  EXPECT_EQ(first.to, 1u);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(node.Begin(a.scheduler, first.claim))), Code::kOk);
  // Appended even though there is nothing to reserve.
  reserve.append_tokens.assign(all.begin() + 30, all.begin() + 40);
  EXPECT_EQ(BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve)).claim, ClaimId());
  reserve.append_tokens.assign(all.begin() + 40, all.end());
  reserve.from = 1;
  reserve.to = 4;
  const auto rest = BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve));
  EXPECT_EQ(rest.from, 1u);
  EXPECT_EQ(rest.to, 4u);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(node.Begin(a.scheduler, rest.claim))), Code::kOk);
  std::vector<uint32_t> longer = all;
  longer.push_back(1);
  EXPECT_EQ(node.Probe(a, PublicPrompt(longer)).blocks, 4u);
  SettleRequest settle;
  settle.request = RequestId(7);
  node.Settle(a, settle);
  EXPECT_EQ(node.status().account.prompt, 20u) << "what is decoded is no prompt";
  node.ExpectBase();
}

// Tokens that were told in a call that was not executed must not be skipped: the next ones would be
// stored under a prompt that never was.
TEST(StoreTest, ARequestWhoseGrowthWasLostGrowsNoMore) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const std::vector<uint32_t> all = Tokens(1, 4 * kBlock);
  node.Acquire(a, RequestId(7), PublicPrompt({all.begin(), all.begin() + 16}));
  ReserveRequest reserve;
  reserve.request = RequestId(7);
  reserve.to = 4;
  reserve.append_tokens.assign(all.begin() + 16, all.begin() + 32);
  EXPECT_EQ(node.Send(a.scheduler, reserve, node.now).code, Code::kExpired);
  reserve.append_tokens.assign(all.begin() + 32, all.begin() + 48);
  const auto answer = BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve));
  EXPECT_EQ(answer.to, 1u);
  node.KillEngine(a);
  node.ExpectBase();
}

TEST(StoreTest, RefusesReservesThatMakeNoSense) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  ReserveRequest backwards;
  backwards.prompt = BlocksPrompt(1, 4);
  backwards.from = 3;
  backwards.to = 2;
  EXPECT_EQ(node.Send(a.scheduler, backwards).code, Code::kInvalid);
  ReserveRequest unopened;
  unopened.request = RequestId(9);
  unopened.to = 1;
  EXPECT_EQ(node.Send(a.scheduler, unopened).code, Code::kUnknown);
  ReserveRequest both;
  both.request = RequestId(9);
  both.prompt = BlocksPrompt(1, 1);
  EXPECT_EQ(node.Send(a.scheduler, both).code, Code::kInvalid);
  ReserveRequest nameless;
  nameless.append_tokens = {1, 2};
  EXPECT_EQ(node.Send(a.scheduler, nameless).code, Code::kInvalid);
  ReserveRequest fine;
  fine.prompt = BlocksPrompt(1, 1);
  fine.to = 1;
  EXPECT_EQ(node.Send(a.workers[0], fine).code, Code::kInvalid) << "a worker reserves nothing";
  EXPECT_EQ(node.status().counters.requests_refused.total(), 5u);
  node.ExpectBase();
}

// FAULTS G1
TEST(StoreTest, EmptyShortAndLongPromptsAndPagesOfEverySize) {
  for (const Bytes page : {Bytes(1), Bytes(4096), Bytes(8ull << 20)}) {
    CoreDriver node;
    EngineOptions options;
    options.page_bytes = page;
    const Engine a = node.StartEngine("a", options);
    EXPECT_EQ(node.Store(a, PublicPrompt({})), 0u);
    EXPECT_EQ(node.Store(a, PublicPrompt({7})), 0u);
    EXPECT_EQ(node.Store(a, PublicPrompt(std::vector<uint32_t>(kBlock, 0xffffffffu))), 1u);
    EXPECT_EQ(node.Acquire(a, RequestId(1), PublicPrompt({})).blocks, 0u);
    EXPECT_EQ(node.Acquire(a, RequestId(2), PublicPrompt({7})).blocks, 0u);
    node.KillEngine(a);
    node.ExpectBase();
  }
  CoreDriver node({.extents = 8});
  EngineOptions options;
  options.block_tokens = 512;
  const Engine a = node.StartEngine("a", options);
  PromptData longest = PublicPrompt(Tokens(1, limits::kTokensPerPrompt));
  ReserveRequest reserve;
  reserve.prompt = longest;
  reserve.to = UINT32_MAX;
  const auto reserved = BodyOf<ReserveAnswer>(node.Send(a.scheduler, reserve));
  EXPECT_EQ(reserved.to, limits::kTokensPerPrompt / 512);
  EXPECT_EQ(node.End(a.scheduler, StoreEnd(node.Begin(a.scheduler, reserved.claim))), Code::kOk);
  EXPECT_EQ(node.Probe(a, longest).blocks, limits::kTokensPerPrompt / 512 - 1);
  longest.tokens.push_back(1);
  const Answer over = node.Send(a.scheduler, ProbeRequest{longest});
  EXPECT_EQ(over.code, Code::kLimit);
  EXPECT_THAT(over.message, AllOf(HasSubstr("1048577 tokens"), HasSubstr("at most 1048576")));
}

}  // namespace
}  // namespace pando::testing
