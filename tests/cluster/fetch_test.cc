// Nodes that share what they hold: fetches, and every way in which they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/cluster_driver.h"

namespace pando::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kBlocks = 12;

// Node 0 has computed a prompt, and the others know.
class Fetch : public ::testing::Test {
 protected:
  void Start(uint32_t nodes, const ClusterDriver::Options& options = {}) {
    cluster = std::make_unique<ClusterDriver>(nodes, options);
    EXPECT_EQ(cluster->Compute(0, prompt), kBlocks);
    cluster->Advance(kTold);
    cluster->ExpectConverged();
  }
  // Node `i` asks for the prompt and waits; what it was told of is in `want`.
  uint64_t Want(uint32_t i, Nanos patience = kSecond) {
    want = cluster->Acquire(i, request, prompt);
    EXPECT_NE(want.ticket, 0u);
    const uint64_t serial =
        cluster->node(i).Await(cluster->engine(i), want.ticket, cluster->now() + patience);
    cluster->Settle();
    return serial;
  }
  // The same, but nothing is delivered: the grant is on its way.
  uint64_t WantQuietly(uint32_t i, Nanos patience = kSecond) {
    want = cluster->node(i).Acquire(cluster->engine(i), request, prompt);
    EXPECT_NE(want.ticket, 0u);
    return cluster->node(i).Await(cluster->engine(i), want.ticket, cluster->now() + patience);
  }
  bool Answered(uint32_t i, uint64_t serial) { return cluster->node(i).awaited.contains(serial); }
  AwaitAnswer AnswerTo(uint32_t i, uint64_t serial) {
    EXPECT_TRUE(Answered(i, serial));
    return BodyOf<AwaitAnswer>(cluster->node(i).awaited[serial]);
  }
  void EndRequest(uint32_t i, const AwaitAnswer& answer) {
    cluster->LoadAndSettle(i, request, prompt, answer.claim, answer.blocks);
  }
  // Everything ends well by itself, however long it takes.
  void ExpectRest() {
    cluster->Advance(90 * kSecond);
    cluster->ExpectBase();
    cluster->ExpectConverged();
  }

  const PromptData prompt = BlocksPrompt(1, kBlocks);
  const RequestId request{77};
  AcquireAnswer want;
  std::unique_ptr<ClusterDriver> cluster;
};

TEST_F(Fetch, WhatOneNodeComputedTheOthersGet) {
  Start(3);
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster->Get(2, prompt), kBlocks);
  EXPECT_EQ(cluster->node(1).status().account.hit_peer, kBlocks * kBlock);
  EXPECT_EQ(cluster->node(1).status().account.hit_host, 0u);
  // What was fetched is held, and told, and hit here the next time.
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster->node(1).status().account.hit_host, kBlocks * kBlock);
  ExpectRest();
}

TEST_F(Fetch, OnlyWhatIsMissingComes) {
  Start(2);
  PromptData head = prompt;
  head.tokens.resize(5 * kBlock);
  EXPECT_EQ(cluster->Compute(1, head), 5u);
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster->node(1).status().account.hit_peer, (kBlocks - 5) * kBlock);
  EXPECT_EQ(cluster->node(1).status().account.hit_host, 5 * kBlock);
  EXPECT_EQ(cluster->peer(1, 0).pages_pulled, kBlocks - 5);
  ExpectRest();
}

TEST_F(Fetch, WhatLeavesALocalRunInItsMiddleComesToo) {
  Start(2);
  PromptData other = prompt;
  for (size_t i = 5 * kBlock; i < other.tokens.size(); ++i) other.tokens[i] += 1'000'000;
  EXPECT_EQ(cluster->Compute(1, other), kBlocks);
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster->node(1).status().account.hit_peer, (kBlocks - 5) * kBlock);
  ExpectRest();
}

TEST_F(Fetch, TwoReplicasOfANodeWaitForOneFetch) {
  Start(2);
  CoreDriver& node = cluster->node(1);
  const Engine other = node.StartEngine("other", {.page_bytes = Bytes(256), .fields = {}});
  const Engine same = node.StartEngine("same", {.page_bytes = Bytes(256)});
  const uint64_t first = WantQuietly(1);
  const AcquireAnswer second = node.Acquire(same, RequestId(1), prompt);
  EXPECT_NE(second.ticket, 0u);
  const uint64_t serial = node.Await(same, second.ticket, cluster->now() + kSecond);
  EXPECT_EQ(node.Acquire(other, RequestId(1), prompt).ticket, 0u) << "another space";
  cluster->Settle();
  EXPECT_EQ(AnswerTo(1, first).blocks, kBlocks);
  EXPECT_EQ(AnswerTo(1, first).peer_from, 0u);
  EXPECT_EQ(AnswerTo(1, first).peer_to, kBlocks);
  EXPECT_EQ(AnswerTo(1, serial).blocks, kBlocks);
  EXPECT_EQ(node.status().counters.fetches, 1u);
  EndRequest(1, AnswerTo(1, first));
}

// FAULTS F1: what a replica here has stored behind them is no peer's.
TEST_F(Fetch, OnlyWhatTheFetchBroughtIsThePeers) {
  Start(2);
  const PromptData whole = BlocksPrompt(1, 30);  // node 0 has the first kBlocks
  PromptData asked = whole;
  asked.tokens.push_back(7);  // a token is left to compute
  const AcquireAnswer acquired = cluster->Acquire(1, request, asked);
  ASSERT_NE(acquired.ticket, 0u);
  cluster->Settle();  // the fetch is over
  EXPECT_EQ(cluster->Compute(1, whole), 30 - kBlocks);
  const uint64_t serial =
      cluster->node(1).Await(cluster->engine(1), acquired.ticket, cluster->now() + kSecond);
  cluster->Settle();
  const auto awaited = BodyOf<AwaitAnswer>(cluster->node(1).awaited[serial]);
  ASSERT_EQ(awaited.blocks, 30u);
  cluster->LoadAndSettle(1, request, asked, awaited.claim, awaited.blocks);
  const auto account = cluster->node(1).status().account;
  EXPECT_EQ(account.hit_peer, kBlocks * kBlock);
  EXPECT_EQ(account.hit_host, (30 - kBlocks) * kBlock);
}

TEST_F(Fetch, AllShardsCome) {
  Start(2, {.shards = 3});
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster->peer(1, 0).pages_pulled, 3 * kBlocks);
  ExpectRest();
}

TEST_F(Fetch, ALongPrefixComesFromSeveralAtOnce) {
  cluster = std::make_unique<ClusterDriver>(
      4, ClusterDriver::Options{.page_bytes = Bytes(1u << 20), .extents = 2});
  const PromptData longer = BlocksPrompt(2, 48);
  for (const uint32_t holder : {0u, 1u, 2u}) cluster->Compute(holder, longer);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(3, longer), 48u);
  uint64_t pages = 0;
  for (const uint32_t holder : {0u, 1u, 2u}) {
    EXPECT_GE(cluster->peer(3, holder).pages_pulled, 16u);
    pages += cluster->peer(3, holder).pages_pulled;
  }
  EXPECT_EQ(pages, 48u);
  ExpectRest();
}

TEST_F(Fetch, ALongChainComesInSeveralGrants) {
  constexpr uint32_t kShards = limits::kShards;
  constexpr uint32_t kLong = 2 * limits::kPagesPerGrant / kShards + 10;
  cluster = std::make_unique<ClusterDriver>(
      2, ClusterDriver::Options{.shards = kShards, .page_bytes = Bytes(16), .extents = 16});
  const PromptData longer = BlocksPrompt(2, kLong);
  EXPECT_EQ(cluster->Compute(0, longer), kLong);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, longer), kLong);
  EXPECT_EQ(cluster->peer(1, 0).grants_asked, 3u);
  ExpectRest();
}

TEST_F(Fetch, ScopesAndExtrasAreComparedByTheOwner) {  // FAULTS A2, A6
  Start(2);
  PromptData scoped = prompt;
  scoped.segments = {{"", 4 * kBlock}, {"tenant/a", scoped.tokens.size()}};
  scoped.extras = {{2, "image"}};
  PromptData other = scoped;
  other.segments[1].scope = "tenant/b";
  cluster->Compute(0, scoped);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, scoped), kBlocks);
  EXPECT_EQ(cluster->Get(1, other), 4u) << "the public part alone";
}

TEST_F(Fetch, AStaleAdvertIsAMiss) {  // FAULTS E6
  Start(2);
  // The owner loses its last blocks, and the news is on its way.
  cluster->net().Partition(0, 1, true);
  CoreDriver& owner = cluster->node(0);
  const AcquireAnswer hit = owner.Acquire(cluster->engine(0), request, prompt);
  owner.Begin(cluster->engine(0).scheduler, hit.claim);
  EXPECT_EQ(owner.End(cluster->engine(0).scheduler, LoadEnd(hit.claim, {0})), Code::kOk);
  const uint64_t serial = WantQuietly(1);
  cluster->net().Partition(0, 1, false);
  cluster->Settle();
  EXPECT_EQ(AnswerTo(1, serial).blocks, 0u);
  EXPECT_FALSE(AnswerTo(1, serial).in_flight);
  EXPECT_EQ(cluster->peer(1, 0).grants_missed, 1u);
  EXPECT_EQ(owner.status().counters.grants_missed, 1u);
  EXPECT_FALSE(cluster->peer(1, 0).closed_for) << "a miss is nobody's fault";
  EndRequest(1, {});
  owner.Settle(cluster->engine(0), {.request = request});
  ExpectRest();
}

TEST_F(Fetch, FetchesOnlyWhatIsFasterThanComputing) {  // FAULTS E8
  ClusterDriver::Options options;
  options.prefill_tokens_per_s = 1'000'000;  // 12 blocks take 192 us
  Start(2, options);
  // No rate is known: the first is fetched, and takes 100 ms.
  cluster->net().transfers().SetFate([](const auto&, const auto&, LoopbackMessage kind) {
    return LoopbackFate{.delay = kind == LoopbackMessage::kPage ? 100 * kMillisecond : 0};
  });
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks) << "makes the connection, and is not measured";
  const PromptData second = BlocksPrompt(7, kBlocks);
  cluster->Compute(0, second);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, second), kBlocks);
  const PromptData next = BlocksPrompt(2, kBlocks);
  cluster->Compute(0, next);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, next), 0u);
  EXPECT_EQ(cluster->node(1).status().counters.fetches_declined, 1u);
  // A rate is not believed for ever.
  cluster->Advance(60 * kSecond);
  EXPECT_EQ(cluster->Get(1, next), kBlocks);
  ExpectRest();
}

TEST_F(Fetch, AShortPullThatWasSlowDoesNotForbidLongOnes) {  // FAULTS E8
  ClusterDriver::Options options;
  options.prefill_tokens_per_s = 2'000;  // 12 blocks take 96 ms, 48 take 384
  options.page_bytes = Bytes(64 << 10);
  Start(2, options);
  const PromptData slow = BlocksPrompt(4, kBlocks);
  cluster->Compute(0, slow);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  cluster->net().transfers().SetFate([delayed = false](auto&, auto&, LoopbackMessage) mutable {
    return LoopbackFate{.delay = (std::exchange(delayed, true) ? 1 : 130) * kMillisecond};
  });
  EXPECT_EQ(cluster->Get(1, slow), kBlocks) << "it takes long once";
  const PromptData longer = BlocksPrompt(2, 48), again = BlocksPrompt(3, kBlocks);
  cluster->Compute(0, longer);
  cluster->Compute(0, again);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, again), 0u) << "a short one may take as long again";
  EXPECT_EQ(cluster->Get(1, longer), 48u);
  EXPECT_EQ(cluster->Get(1, again), kBlocks) << "a long one was faster than that";
  ExpectRest();
}

TEST_F(Fetch, WhoMakesTheConnectionIsNotMeasured) {  // FAULTS E8
  ClusterDriver::Options options;
  options.prefill_tokens_per_s = 2'000;
  options.page_bytes = Bytes(64 << 10);
  Start(2, options);
  cluster->net().transfers().SetFate([delayed = false](auto&, auto&, LoopbackMessage) mutable {
    return LoopbackFate{.delay = (std::exchange(delayed, true) ? 1 : 130) * kMillisecond};
  });
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  const PromptData next = BlocksPrompt(2, kBlocks);
  cluster->Compute(0, next);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, next), kBlocks) << "the connection is there now";
  ExpectRest();
}

TEST_F(Fetch, WhatFailsAtTheSameTimeIsOneFailure) {
  Start(2);
  std::vector<PromptData> prompts;
  for (uint32_t i = 0; i < 6; ++i) {
    prompts.push_back(BlocksPrompt(10 + i, kBlocks));
    cluster->Compute(0, prompts.back());
  }
  cluster->Advance(kTold);
  cluster->net().transfers().SetFate(
      [](auto&, auto&, LoopbackMessage) { return LoopbackFate{.drop = true}; });
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_NE(cluster->Acquire(1, RequestId(100 + i), prompts[i]).ticket, 0u);
  }
  for (int i = 0; i < 200 && !cluster->peer(1, 0).closed_for; ++i)
    cluster->Advance(100 * kMillisecond);
  ASSERT_TRUE(cluster->peer(1, 0).closed_for);
  EXPECT_LT(*cluster->peer(1, 0).closed_for, 1500 * kMillisecond) << "the first time";
  cluster->net().transfers().SetFate([](auto&, auto&, LoopbackMessage) { return LoopbackFate{}; });
  for (uint32_t i = 0; i < 6; ++i) {
    cluster->LoadAndSettle(1, RequestId(100 + i), prompts[i], ClaimId(), 0);
  }
  ExpectRest();
}

// FAULTS D6, E8: the node's own transfer process is no peer's fault.
TEST_F(Fetch, APullThatEndedWithTheOwnTransferBlamesNobody) {
  Start(3);
  EXPECT_EQ(cluster->Get(2, prompt), kBlocks);
  cluster->Advance(kTold);
  cluster->net().transfers().SetFate(
      [](auto&, auto&, LoopbackMessage) { return LoopbackFate{.drop = true}; });
  cluster->net().on_event = [](uint32_t member, TransferEvent* event) {
    auto* const ended = std::get_if<PullEnded>(event);
    if (member == 1 && ended != nullptr) ended->status = PullStatus::kTransferLost;
  };
  const uint64_t serial = WantQuietly(1);
  cluster->Advance(20 * kSecond);
  EXPECT_EQ(AnswerTo(1, serial).blocks, 0u);
  EndRequest(1, {});
  EXPECT_EQ(cluster->peer(1, 0).pulls + cluster->peer(1, 2).pulls, 1u) << "nobody else is asked";
  EXPECT_FALSE(cluster->peer(1, 0).closed_for);
  EXPECT_FALSE(cluster->peer(1, 2).closed_for);
  ExpectRest();
}

TEST_F(Fetch, NothingIsFetchedWhileTheOwnTransferIsDown) {
  Start(2);
  cluster->node(1).Input(TransferRuns{false});
  EXPECT_EQ(cluster->Get(1, prompt), 0u);
  EXPECT_EQ(cluster->node(1).status().counters.fetches, 0u);
  EXPECT_EQ(cluster->peer(1, 0).grants_asked, 0u);
  cluster->node(1).Input(TransferRuns{true});
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks);
  ExpectRest();
}

TEST_F(Fetch, APageThatCameWrongIsNeverServed) {  // FAULTS B6, G4
  Start(3);
  cluster->net().transfers().SetFate([pages = 0](auto&, auto&, LoopbackMessage kind) mutable {
    return LoopbackFate{.corrupt = kind == LoopbackMessage::kPage && ++pages == 5};
  });
  const uint64_t serial = Want(1);
  EXPECT_EQ(AnswerTo(1, serial).blocks, 4u) << "up to the first bad one";
  EndRequest(1, AnswerTo(1, serial));
  EXPECT_EQ(cluster->peer(1, 0).pages_bad, 1u);
  EXPECT_TRUE(cluster->peer(1, 0).closed_for) << "it is not asked again for a while";
  EXPECT_EQ(cluster->node(0).status().counters.peer_pages_called_bad, 1u);
  EXPECT_EQ(cluster->Get(2, prompt), kBlocks) << "the owner still serves others";
  ExpectRest();
}

TEST_F(Fetch, TheOwnersDeathWakesWhoWaits) {
  Start(3);
  const uint64_t serial = WantQuietly(1);
  cluster->Crash(0);
  cluster->Settle();
  EXPECT_EQ(AnswerTo(1, serial).blocks, 0u);
  EndRequest(1, {});
  EXPECT_TRUE(cluster->peer(1, 0).closed_for);
  cluster->Restart(0);
  cluster->Advance(5 * kSecond);
  cluster->ExpectConverged();
  EXPECT_EQ(cluster->Compute(0, prompt), kBlocks);
  cluster->Advance(kTold);
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks) << "another life has a fresh start";
  EXPECT_EQ(cluster->peer(1, 0).grants_asked, 2u);
  EXPECT_EQ(cluster->peer(1, 0).grants_refused, 1u) << "the answer that never came counts";
  ExpectRest();
}

TEST_F(Fetch, AnotherHolderHelpsOut) {
  Start(3);
  EXPECT_EQ(cluster->Get(2, prompt), kBlocks);
  cluster->Advance(kTold);
  const uint64_t serial = WantQuietly(1);
  cluster->Crash(0);  // the first of two equal holders
  cluster->Settle();
  EXPECT_EQ(AnswerTo(1, serial).blocks, kBlocks);
  EndRequest(1, AnswerTo(1, serial));
  EXPECT_EQ(cluster->peer(1, 2).pages_pulled, kBlocks);
}

// FAULTS B2: what came well is a block's already, and is not written again.
TEST_F(Fetch, ASecondTryPullsOnlyWhatIsMissing) {
  Start(3);
  EXPECT_EQ(cluster->Get(2, prompt), kBlocks);
  cluster->Advance(kTold);
  cluster->net().transfers().SetFate([pages = 0](auto&, auto&, LoopbackMessage kind) mutable {
    return LoopbackFate{.corrupt = kind == LoopbackMessage::kPage && ++pages == 5};
  });
  const uint64_t serial = Want(1);
  EXPECT_EQ(AnswerTo(1, serial).blocks, kBlocks);
  EndRequest(1, AnswerTo(1, serial));
  EXPECT_EQ(cluster->peer(1, 0).pages_pulled, kBlocks - 1);
  EXPECT_EQ(cluster->peer(1, 2).pages_pulled, 1u);
  ExpectRest();
}

// FAULTS B2, D6: who waits is answered in time; the pages are nobody's until the engine is done.
TEST_F(Fetch, ADeadlineAnswersAndPagesStayQuarantined) {
  Start(2);
  cluster->net().transfers().SetFate([](auto&, auto&, LoopbackMessage kind) {
    return LoopbackFate{.delay = kind == LoopbackMessage::kPage ? 12 * kSecond : 0};
  });
  const uint64_t serial = Want(1);
  EXPECT_FALSE(Answered(1, serial));
  cluster->Advance(kSecond);
  EXPECT_EQ(AnswerTo(1, serial).blocks, 0u);
  EXPECT_TRUE(AnswerTo(1, serial).in_flight) << "its own time was shorter than the fetch's";
  EndRequest(1, {});
  const CoreStatus status = cluster->node(1).status();
  EXPECT_EQ(status.pages.receiving, kBlocks);
  cluster->node(1).Input(DrainRequested{});
  EXPECT_EQ(cluster->node(1).status().pages.quarantined, kBlocks);
  EXPECT_EQ(cluster->node(1).status().cluster.fetches, 1u);
  cluster->ExpectSound();
  cluster->net().transfers().SetFate([](auto&, auto&, LoopbackMessage) { return LoopbackFate{}; });
  cluster->Advance(30 * kSecond);
  EXPECT_EQ(cluster->node(1).status().pages.quarantined, 0u);
  EXPECT_EQ(cluster->node(1).status().cluster.fetches, 0u);
  cluster->ExpectBase();
}

TEST_F(Fetch, APartitionCostsOneDeadlineAndNoPage) {
  Start(3);
  const uint64_t serial = WantQuietly(1, 5 * kSecond);
  cluster->net().Partition(0, 1, true);
  cluster->Advance(5 * kSecond);
  EXPECT_EQ(AnswerTo(1, serial).blocks, 0u);
  EndRequest(1, {});
  EXPECT_EQ(cluster->Get(2, prompt), kBlocks) << "others do not notice";
  cluster->Advance(60 * kSecond);  // the feed has been silent for long: the view is dropped
  EXPECT_EQ(cluster->peer(1, 0).state, PeerState::kConnecting);
  EXPECT_EQ(cluster->peer(1, 0).blocks, 0u);
  cluster->net().Partition(0, 1, false);
  ExpectRest();
}

TEST_F(Fetch, GrantsOfAGuestThatIsGoneAreRevoked) {
  Start(2);
  cluster->net().transfers().SetFate([](const auto&, const auto&, LoopbackMessage kind) {
    return LoopbackFate{.delay = kind == LoopbackMessage::kPage ? 3 * kSecond : 0};
  });
  Want(1);
  EXPECT_EQ(cluster->node(0).status().grants, 1u);
  cluster->Restart(1);
  cluster->Advance(kSecond);
  EXPECT_EQ(cluster->node(0).status().grants, 0u) << "its new life has said hello";
  cluster->Advance(20 * kSecond);
  cluster->ExpectBase();
}

TEST_F(Fetch, AFullPoolFetchesNothing) {
  ClusterDriver::Options options;
  options.extent_pages = kBlocks;
  Start(2, options);
  const PromptData other = BlocksPrompt(9, kBlocks);
  cluster->Compute(1, other);
  const AcquireAnswer pinned = cluster->Acquire(1, request, other);
  EXPECT_EQ(cluster->Get(1, prompt), 0u) << "all pages are leased";
  EXPECT_EQ(cluster->node(1).status().counters.fetches_full, 1u);
  cluster->LoadAndSettle(1, request, other, pinned.claim, pinned.blocks);
  EXPECT_EQ(cluster->Get(1, prompt), kBlocks) << "now they can go";
  ExpectRest();
}

TEST_F(Fetch, ADrainingNodeLeavesAndIsLeft) {
  Start(3);
  cluster->node(0).Input(DrainRequested{});
  cluster->Settle();
  EXPECT_EQ(cluster->peer(1, 0).blocks, 0u) << "its feed has ended";
  EXPECT_EQ(cluster->node(1).status().cluster.guests, 1u) << "it said goodbye";
  EXPECT_EQ(cluster->Get(1, prompt), 0u);
  cluster->ExpectSound();
}

}  // namespace
}  // namespace pando::testing
