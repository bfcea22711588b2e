// Acquire, begin, end: who gets what, and what a bad page does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

using ::testing::HasSubstr;

// FAULTS A9
TEST(LoadTest, WholeBlocksOnlyAndNeverAllTokens) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  EXPECT_EQ(node.Store(a, BlocksPrompt(1, 4, 0)), 4u);
  struct Case {
    uint64_t tokens;
    uint32_t blocks;
  };
  uint64_t request = 0;
  for (const Case& c : {Case{4 * kBlock + 1, 4}, Case{4 * kBlock, 3}, Case{4 * kBlock - 1, 3},
                        Case{kBlock + 1, 1}, Case{kBlock, 0}, Case{1, 0}, Case{0, 0}}) {
    const PromptData prompt = PublicPrompt(Tokens(1, c.tokens));
    EXPECT_EQ(node.Probe(a, prompt).blocks, c.blocks) << c.tokens;
    EXPECT_EQ(node.LoadAndSettle(a, RequestId(++request), prompt), c.blocks) << c.tokens;
  }
  node.ExpectBase();
}

// FAULTS A9, F5
TEST(LoadTest, ServesTheCommonPrefixAndNothingBehindIt) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 6));
  PromptData fork = BlocksPrompt(1, 6);
  fork.tokens[2 * kBlock + 3] ^= 1;
  EXPECT_EQ(node.Probe(a, fork).blocks, 2u);
  EXPECT_EQ(node.LoadAndSettle(a, RequestId(1), fork), 2u);
  EXPECT_EQ(node.status().account.hit_host, 2u * kBlock);
  node.ExpectBase();
}

TEST(LoadTest, SegmentsOfOtherScopesDoNotMatch) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  PromptData stored = BlocksPrompt(1, 4);
  stored.segments = {{"", 2 * kBlock}, {"tenant/a", stored.tokens.size()}};
  EXPECT_EQ(node.Store(a, stored), 4u);
  EXPECT_EQ(node.Probe(a, stored).blocks, 4u);
  PromptData other = stored;
  other.segments[1].scope = "tenant/b";
  EXPECT_EQ(node.Probe(a, other).blocks, 2u);
  PromptData spoiled = stored;
  spoiled.segments[1].end -= 1;
  EXPECT_EQ(node.Send(a.scheduler, ProbeRequest{spoiled}).code, Code::kInvalid);
  spoiled.segments.assign(limits::kSegments + 1, {"", 1});
  EXPECT_EQ(node.Send(a.scheduler, ProbeRequest{spoiled}).code, Code::kLimit);
  spoiled.segments = {{std::string(limits::kScopeBytes + 1, 's'), stored.tokens.size()}};
  EXPECT_EQ(node.Send(a.scheduler, ProbeRequest{spoiled}).code, Code::kLimit);
  PromptData heavy = BlocksPrompt(1, 4);
  heavy.extras = {{0, std::string(limits::kExtraBytes + 1, 'x')}};
  EXPECT_EQ(node.Send(a.scheduler, ProbeRequest{heavy}).code, Code::kLimit);
}

// FAULTS F5, F6
TEST(LoadTest, APageFoundBadInTheMiddleIsDroppedStoredAgainAndHitAgain) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 6));
  const AcquireAnswer hit = node.Acquire(a, RequestId(1), BlocksPrompt(1, 6));
  const BeginItem begun = node.Begin(a.scheduler, hit.claim);
  EXPECT_EQ(begun.pages.size(), 6u);
  EXPECT_EQ(node.End(a.scheduler, LoadEnd(hit.claim, {3, 4})), Code::kOk);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 6)).blocks, 3u);
  node.ExpectSound();

  SettleRequest lie;
  lie.request = RequestId(1);
  lie.host = 4 * kBlock;
  EXPECT_THAT(node.Send(a.scheduler, lie).message, HasSubstr("48 from host or peer of 48"));
  EXPECT_EQ(node.status().account.hit_host, 3u * kBlock);
  EXPECT_EQ(node.status().account.failed, 3u * kBlock);
  EXPECT_EQ(node.status().account.computed, 3u * kBlock + 1);
  EXPECT_EQ(node.status().counters.pages_bad, 2u);
  EXPECT_EQ(node.Logged("page.bad").size(), 1u);

  EXPECT_EQ(node.Store(a, BlocksPrompt(1, 6)), 3u);
  EXPECT_EQ(node.LoadAndSettle(a, RequestId(2), BlocksPrompt(1, 6)), 6u);
  node.ExpectBase();
}

// However many report a page, and however often, it is one page.
TEST(LoadTest, BadPagesAreCountedOnce) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 6));
  std::vector<ClaimId> claims;
  for (uint64_t id = 1; id <= 3; ++id) {
    claims.push_back(node.Acquire(a, RequestId(id), BlocksPrompt(1, 6)).claim);
    node.Begin(a.scheduler, claims.back());
  }
  for (ClaimId claim : claims) {
    EXPECT_EQ(node.End(a.scheduler, LoadEnd(claim, {5, 4, 5, 5})), Code::kOk);
  }
  EXPECT_EQ(node.status().counters.pages_bad, 2u);
  EndItem failed;
  failed.claim = node.Reserve(a, BlocksPrompt(2, 4)).claim;
  failed.failed = true;
  node.Begin(a.scheduler, failed.claim);
  EXPECT_EQ(node.End(a.scheduler, failed), Code::kOk);
  EXPECT_EQ(node.status().counters.pages_bad, 2u) << "nobody found those bad";
  EXPECT_EQ(node.status().counters.pages_given_up, 4u);
  node.KillEngine(a);
  node.ExpectBase();
}

// FAULTS B5: what is bad is bad, however late it is said; and what is malformed is not looked at.
TEST(LoadTest, ABadPageInAnEndPastItsDeadlineIsDroppedAllTheSame) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 6));
  const AcquireAnswer wild = node.Acquire(a, RequestId(1), BlocksPrompt(1, 6));
  const AcquireAnswer hit = node.Acquire(a, RequestId(2), BlocksPrompt(1, 6));
  for (ClaimId claim : {wild.claim, hit.claim}) node.Begin(a.scheduler, claim);
  const auto late = [&](ClaimId claim, uint32_t bad) {
    return node.Send(a.scheduler, EndRequest{{LoadEnd(claim, {bad})}}, node.now).code;
  };
  EXPECT_EQ(late(wild.claim, 6), Code::kExpired);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 6)).blocks, 6u);
  EXPECT_EQ(late(hit.claim, 4), Code::kExpired);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 6)).blocks, 4u);
  EXPECT_EQ(node.status().counters.pages_bad, 1u);
  EXPECT_EQ(node.status().counters.pages_loaded, 0u);
  EXPECT_EQ(node.status().holds, 0u);
  node.KillEngine(a);
  node.ExpectBase();
}

// FAULTS B2
TEST(LoadTest, ABadPageThatAnotherStillReadsIsQuarantinedUntilItEnds) {
  CoreDriver node;
  const Engine a = node.StartEngine("a", 2);
  const Engine b = node.StartEngine("b", 2);
  node.Store(a, BlocksPrompt(1, 4));
  const AcquireAnswer of_a = node.Acquire(a, RequestId(1), BlocksPrompt(1, 4));
  const AcquireAnswer of_b = node.Acquire(b, RequestId(1), BlocksPrompt(1, 4));
  node.Begin(a.workers[0], of_a.claim);
  node.Begin(b.workers[0], of_b.claim);
  EXPECT_EQ(node.End(a.workers[0], LoadEnd(of_a.claim, {1})), Code::kOk);
  EXPECT_EQ(node.status().pages.quarantined, 3u) << "b still reads three pages of shard 0";
  EXPECT_EQ(node.Begin(b.workers[1], of_b.claim).code, Code::kUnknown) << "they have gone";
  EXPECT_EQ(node.Begin(a.workers[1], of_a.claim).code, Code::kUnknown);
  EXPECT_EQ(node.status().leases, 1u);
  EXPECT_EQ(node.End(b.workers[0], LoadEnd(of_b.claim)), Code::kOk);
  EXPECT_EQ(node.status().pages.quarantined, 0u);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 4)).blocks, 1u);
  node.KillEngine(a);
  node.KillEngine(b);
  EXPECT_EQ(node.status().account.hit_host, 0u) << "shard 1 loaded nothing";
  node.ExpectBase();
}

// FAULTS B2, F6: the claim is over, the finding is true all the same.
TEST(LoadTest, APageFoundBadAfterTheDeadlineIsDroppedAllTheSame) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 6));
  const AcquireAnswer acquired =
      node.Acquire(a, RequestId(1), BlocksPrompt(1, 6), node.now + 1'000'000);
  node.Begin(a.scheduler, acquired.claim);
  node.Advance(2'000'000);
  EXPECT_EQ(node.End(a.scheduler, LoadEnd(acquired.claim, {2})), Code::kOk);
  EXPECT_EQ(node.Probe(a, BlocksPrompt(1, 6)).blocks, 2u);
  SettleRequest settle;
  settle.request = RequestId(1);
  node.Settle(a, settle);
  EXPECT_EQ(node.status().account.hit_host, 0u);
  node.ExpectBase();
}

TEST(LoadTest, SaysWhatIsBeingWritten) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const Engine b = node.StartEngine("b");
  node.Store(a, BlocksPrompt(1, 2));
  const ReserveAnswer longer = node.Reserve(a, BlocksPrompt(1, 5));
  EXPECT_EQ(longer.from, 2u);
  const AcquireAnswer hit = node.Acquire(b, RequestId(1), BlocksPrompt(1, 5));
  EXPECT_EQ(hit.blocks, 2u);
  EXPECT_TRUE(hit.in_flight);
  EXPECT_NE(hit.ticket, 0u);
  const Answer abort = node.Send(a.scheduler, AbortRequest{{longer.claim}});
  EXPECT_EQ(abort.code, Code::kOk) << abort.message;
  EXPECT_FALSE(node.Acquire(b, RequestId(2), BlocksPrompt(1, 5)).in_flight);
}

TEST(LoadTest, WhatTheEngineHasItselfIsNotLeased) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 3));
  AcquireRequest acquire{RequestId(1), BlocksPrompt(1, 3), 3 * kBlock};
  const auto all = BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire));
  EXPECT_EQ(all.claim, ClaimId());
  EXPECT_EQ(all.blocks, 0u);
  acquire.request = RequestId(2);
  acquire.engine_hit_tokens = 3 * kBlock - 1;
  EXPECT_EQ(BodyOf<AcquireAnswer>(node.Send(a.scheduler, acquire)).blocks, 3u);
  acquire.request = RequestId(3);
  acquire.engine_hit_tokens = 3 * kBlock + 2;
  EXPECT_EQ(node.Send(a.scheduler, acquire).code, Code::kInvalid);
}

// FAULTS C10
TEST(LoadTest, WhatComesTooLateIsNotExecuted) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  node.Store(a, BlocksPrompt(1, 3));
  const Answer late =
      node.Send(a.scheduler, AcquireRequest{RequestId(1), BlocksPrompt(1, 3)}, node.now - 5);
  EXPECT_EQ(late.code, Code::kExpired);
  EXPECT_THAT(late.message, HasSubstr("5 ns ago"));
  EXPECT_EQ(node.status().requests, 0u);
  EXPECT_EQ(node.status().leases, 0u);
  EXPECT_EQ(node.status().counters.requests_expired, 1u);
  EXPECT_EQ(
      node.Send(a.scheduler, AcquireRequest{RequestId(1), BlocksPrompt(1, 3)}, node.now + 1).code,
      Code::kOk);
  EXPECT_EQ(node.Acquire(a, RequestId(2), BlocksPrompt(1, 3), node.now).claim, ClaimId())
      << "a claim that would be over is not made";
  node.KillEngine(a);
  node.ExpectBase();
}

TEST(LoadTest, RequestsHaveNamesAndLimits) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  EXPECT_EQ(node.Send(a.scheduler, AcquireRequest{RequestId(0), BlocksPrompt(1, 1)}).code,
            Code::kInvalid);
  node.Acquire(a, RequestId(1), BlocksPrompt(1, 1));
  const Answer twice = node.Send(a.scheduler, AcquireRequest{RequestId(1), BlocksPrompt(2, 1)});
  EXPECT_EQ(twice.code, Code::kInvalid);
  EXPECT_THAT(twice.message, HasSubstr("request 1 is open"));
  for (uint64_t id = 2; id <= limits::kRequestsPerReplica; ++id) {
    node.Acquire(a, RequestId(id), PublicPrompt({1}));
  }
  const Answer over = node.Send(
      a.scheduler, AcquireRequest{RequestId(limits::kRequestsPerReplica + 1), PublicPrompt({1})});
  EXPECT_EQ(over.code, Code::kLimit);
  EXPECT_THAT(over.message, HasSubstr("at most 8192"));
  const Engine b = node.StartEngine("b");
  node.Acquire(b, RequestId(1), BlocksPrompt(1, 1));
  EXPECT_EQ(node.status().requests, limits::kRequestsPerReplica + 1u)
      << "names are a replica's own";
  node.KillEngine(a);
  node.KillEngine(b);
  node.ExpectBase();
}

// Extras count as tokens do: 2048 of 4 KiB are 8 MiB and some.
PromptData HeavyPrompt() {
  PromptData heavy = PublicPrompt(Tokens(1, 2048 * kBlock));
  for (uint32_t block = 0; block < 2048; ++block) {
    heavy.extras.push_back({block, std::string(limits::kExtraBytes, 'x')});
  }
  return heavy;
}

TEST(LoadTest, OpenPromptsOfAllReplicasHaveALimit) {
  CoreDriver node;
  const PromptData heavy = HeavyPrompt();
  std::vector<Engine> engines;
  Code code = Code::kOk;
  std::string message;
  for (uint64_t id = 1; code == Code::kOk; ++id) {
    if (id % 30 == 1) engines.push_back(node.StartEngine("e" + std::to_string(id)));
    const Answer answer = node.Send(engines.back().scheduler, AcquireRequest{RequestId(id), heavy});
    code = answer.code;
    message = answer.message;
    ASSERT_LT(id, 200u);
  }
  EXPECT_THAT(message, HasSubstr("in all replicas of a node"));
  node.KillEngine(engines.front());
  EXPECT_EQ(node.Send(engines.back().scheduler, AcquireRequest{RequestId(999), heavy}).code,
            Code::kOk);
  for (size_t i = 1; i < engines.size(); ++i) node.KillEngine(engines[i]);
  node.ExpectBase();
}

TEST(LoadTest, OpenPromptsHaveALimit) {
  CoreDriver node;
  const Engine a = node.StartEngine("a");
  const PromptData heavy = HeavyPrompt();
  const uint64_t each = heavy.tokens.size() * 4 + 2048 * (limits::kExtraBytes + 64) + 64;
  const uint64_t fit = limits::kOpenBytesPerReplica / each;
  for (uint64_t id = 1; id <= fit; ++id) node.Acquire(a, RequestId(id), heavy);
  const Answer over = node.Send(a.scheduler, AcquireRequest{RequestId(999), heavy});
  EXPECT_EQ(over.code, Code::kLimit);
  EXPECT_THAT(over.message, HasSubstr(std::to_string((fit + 1) * each) + " bytes of prompts"));
  EXPECT_THAT(over.message, HasSubstr("settle"));
  SettleRequest settle;
  settle.request = RequestId(1);
  node.Settle(a, settle);
  node.Acquire(a, RequestId(999), heavy);
  node.KillEngine(a);
  node.ExpectBase();
}

}  // namespace
}  // namespace pando::testing
