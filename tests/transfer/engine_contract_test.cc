// What every TransferEngine holds to (transfer/engine.h), whatever moves its bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/transfer/engine_pair.h"
#include "transfer/memory/page_copy.h"

namespace pando {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr GrantId kGrant{17, 4};

using Bytes = std::pmr::vector<std::byte>;
using MakePair = std::unique_ptr<EnginePair> (*)(const TransferLimits&);

class EngineContractTest : public testing::TestWithParam<MakePair> {
 protected:
  void SetUp() override {
    pair_ = GetParam()({.pages_in_flight = 8, .stall_timeout = 5 * kSecond});
  }
  // Engines end before the memory that they may touch.
  void TearDown() override {
    if (pair_ == nullptr) return;
    pair_->requester.reset();
    pair_->owner.reset();
    from_.clear();
    to_.clear();
    pair_.reset();
  }

  void MakePages(size_t count, size_t bytes) {
    from_.clear();
    to_.clear();
    for (size_t i = 0; i < count; ++i) {
      from_.emplace_back(bytes, std::byte{0}, pair_->memory());
      to_.emplace_back(bytes, std::byte{0xee}, pair_->memory());
    }
    for (Bytes& page : from_) {
      for (std::byte& byte : page) byte = static_cast<std::byte>(random_());
    }
  }
  void OfferAll() {
    Offer offer{kGrant, {}};
    for (const Bytes& page : from_) offer.pages.push_back({page});
    ASSERT_TRUE(pair_->owner->Start(std::move(offer)));
  }
  Pull PullOf(uint64_t id, Nanos time_left = 20 * kSecond) {
    Pull pull{id, pair_->owner_address, kGrant, pair_->Now() + time_left, {}};
    for (uint32_t i = 0; i < from_.size(); ++i) {
      pull.pages.push_back({i, PageChecksum(from_[i]), to_[i]});
    }
    return pull;
  }
  void AwaitEnd(uint64_t id) {
    ASSERT_TRUE(pair_->Await([&] { return pair_->requester_heard.ended.contains(id); }));
    ASSERT_EQ(pair_->requester_heard.pages[id].size(), to_.size()) << "each page has an outcome";
  }
  PullEnded Ended(uint64_t id) { return pair_->requester_heard.ended.at(id); }
  uint32_t Count(uint64_t id, PageOutcome outcome) {
    return pair_->requester_heard.Count(id, outcome);
  }
  void AwaitGrantEnded() {
    ASSERT_TRUE(pair_->Await([&] { return !pair_->owner_heard.grants.empty(); }));
    ASSERT_EQ(pair_->owner_heard.grants.size(), 1u);
    EXPECT_EQ(pair_->owner_heard.grants[0].grant, kGrant);
  }

  std::mt19937 random_{5};
  std::vector<Bytes> from_, to_;
  std::unique_ptr<EnginePair> pair_;
};

// FAULTS G1
TEST_P(EngineContractTest, PagesOfEverySizeArriveWhole) {
  uint64_t id = 0;
  for (const size_t bytes : {1u, 7u, 4096u, 65'536u, 65'537u, 262'144u, 1u << 20, 8u << 20}) {
    SCOPED_TRACE(bytes);
    MakePages(bytes > 1u << 20 ? 3 : 20, bytes);
    OfferAll();
    pair_->requester->Start(PullOf(++id));
    AwaitEnd(id);
    EXPECT_EQ(Ended(id).status, PullStatus::kOk);
    EXPECT_EQ(Ended(id).bytes, bytes * from_.size());
    EXPECT_TRUE(from_ == to_);
    pair_->owner->Revoke(kGrant);
    AwaitGrantEnded();
    EXPECT_EQ(pair_->owner_heard.grants[0].pages_sent, from_.size());
    pair_->owner_heard.grants.clear();
  }
  const TransferCounters sent = pair_->owner->counters(), got = pair_->requester->counters();
  EXPECT_EQ(sent.pages_sent, got.pages_pulled);
  EXPECT_EQ(sent.bytes_sent, got.bytes_pulled);
  EXPECT_EQ(got.pulls, id);
  EXPECT_EQ(got.pages_failed + got.pages_bad + got.messages_refused, 0u);
  EXPECT_EQ(got.connections, 1u) << "one connection serves all";
}

TEST_P(EngineContractTest, ManyPullsAtOnce) {
  MakePages(400, 3000);
  OfferAll();
  const Pull all = PullOf(1);
  for (uint64_t id = 1; id <= 20; ++id) {
    Pull pull{id, all.address, all.grant, all.deadline, {}};
    for (size_t i = 0; i < 20; ++i) pull.pages.push_back(all.pages[(id - 1) * 20 + i]);
    pair_->requester->Start(std::move(pull));
  }
  ASSERT_TRUE(pair_->Await([&] { return pair_->requester_heard.ended.size() == 20; }));
  for (uint64_t id = 1; id <= 20; ++id) EXPECT_EQ(Ended(id).status, PullStatus::kOk);
  EXPECT_TRUE(from_ == to_);
}

TEST_P(EngineContractTest, APullOfNothingEnds) {  // FAULTS G1
  pair_->requester->Start(PullOf(1));
  AwaitEnd(1);
  EXPECT_EQ(Ended(1).status, PullStatus::kOk);
}

// FAULTS E6, G4: refused by an answer, long before any deadline.
TEST_P(EngineContractTest, AnUnknownGrantIsRefused) {
  MakePages(20, 1000);
  const Nanos start = pair_->Now();
  pair_->requester->Start(PullOf(1));
  AwaitEnd(1);
  EXPECT_EQ(Ended(1).status, PullStatus::kRefused);
  EXPECT_EQ(Count(1, PageOutcome::kFailed), 20u);
  EXPECT_LT(pair_->Now() - start, 10 * kSecond);
  EXPECT_TRUE(pair_->Await([&] { return pair_->owner->counters().refused_grants == 20; }));
  EXPECT_EQ(to_[0], Bytes(1000, std::byte{0xee}));
}

// FAULTS G4
TEST_P(EngineContractTest, AWrongIndexOrLengthIsRefusedAndTheOthersCome) {
  MakePages(6, 100'000);
  OfferAll();
  Pull pull = PullOf(1);
  pull.pages[1].index = 6;
  pull.pages[2].to = pull.pages[2].to.subspan(1);
  pull.pages[3].to = {};
  pair_->requester->Start(std::move(pull));
  AwaitEnd(1);
  EXPECT_EQ(Ended(1).status, PullStatus::kRefused);
  EXPECT_EQ(Count(1, PageOutcome::kArrived), 3u);
  EXPECT_EQ(Count(1, PageOutcome::kFailed), 3u);
  EXPECT_TRUE(pair_->Await([&] { return pair_->owner->counters().refused_pages == 3; }));
}

// FAULTS G3, G4: a grant is no source of pages without end.
TEST_P(EngineContractTest, APageIsServedOnce) {
  MakePages(4, 5000);
  OfferAll();
  pair_->requester->Start(PullOf(1));
  AwaitEnd(1);
  pair_->requester->Start(PullOf(2));
  AwaitEnd(2);
  EXPECT_EQ(Ended(1).status, PullStatus::kOk);
  EXPECT_EQ(Ended(2).status, PullStatus::kRefused);
}

// FAULTS B6, G4
TEST_P(EngineContractTest, AWrongChecksumIsBadAndThePullGoesOn) {
  MakePages(5, 300'000);
  OfferAll();
  Pull pull = PullOf(1);
  pull.pages[2].checksum ^= 1;
  pair_->requester->Start(std::move(pull));
  AwaitEnd(1);
  EXPECT_EQ(Ended(1).status, PullStatus::kOk);
  EXPECT_EQ(pair_->requester_heard.pages[1][2], PageOutcome::kBad);
  EXPECT_EQ(Count(1, PageOutcome::kArrived), 4u);
  EXPECT_EQ(pair_->requester->counters().pages_bad, 1u);
}

// FAULTS B2: after GrantEnded the memory is the owner's again.
TEST_P(EngineContractTest, RevokeInMidPull) {
  MakePages(64, 400'000);
  const std::vector<Bytes> before = from_;
  OfferAll();
  pair_->requester->Start(PullOf(1));
  ASSERT_TRUE(pair_->Await([&] { return Count(1, PageOutcome::kArrived) >= 1; }));
  pair_->owner->Revoke(kGrant);
  AwaitGrantEnded();
  for (Bytes& page : from_) std::fill(page.begin(), page.end(), std::byte{0xdd});
  AwaitEnd(1);
  EXPECT_EQ(Count(1, PageOutcome::kBad), 0u) << "no page was read after GrantEnded";
  for (const auto& [position, outcome] : pair_->requester_heard.pages[1]) {
    if (outcome == PageOutcome::kArrived) {
      EXPECT_EQ(to_[position], before[position]);
    }
  }
  pair_->owner->Revoke(kGrant);  // unknown by now: nothing
}

// FAULTS D6, B2: what ended is not written any more.
TEST_P(EngineContractTest, CancelInMidPull) {
  MakePages(64, 400'000);
  OfferAll();
  pair_->requester->Start(PullOf(1));
  ASSERT_TRUE(pair_->Await([&] { return Count(1, PageOutcome::kArrived) >= 1; }));
  pair_->requester->Cancel(1);
  AwaitEnd(1);
  if (Ended(1).status != PullStatus::kOk) {
    EXPECT_EQ(Ended(1).status, PullStatus::kCancelled);
  }
  const std::vector<Bytes> mine(64, Bytes(400'000, std::byte{0x11}));
  for (size_t i = 0; i < to_.size(); ++i) std::memcpy(to_[i].data(), mine[i].data(), 400'000);
  pair_->owner->Revoke(kGrant);
  AwaitGrantEnded();
  EXPECT_TRUE(to_ == mine);
}

TEST_P(EngineContractTest, ADeadlineThatHasPassed) {  // FAULTS D6
  MakePages(3, 1000);
  OfferAll();
  pair_->requester->Start(PullOf(1, -1));
  AwaitEnd(1);
  EXPECT_EQ(Ended(1).status, PullStatus::kDeadline);
  EXPECT_EQ(Count(1, PageOutcome::kFailed), 3u);
}

// FAULTS C3: PLATFORM 2.4, the owner goes.
TEST_P(EngineContractTest, TheOwnerGoesInMidPull) {
  MakePages(64, 400'000);
  OfferAll();
  pair_->requester->Start(PullOf(1));
  ASSERT_TRUE(pair_->Await([&] { return Count(1, PageOutcome::kArrived) >= 1; }));
  pair_->owner.reset();
  from_.clear();  // read by nobody
  AwaitEnd(1);
  if (Ended(1).status != PullStatus::kOk) {
    EXPECT_EQ(Ended(1).status, PullStatus::kUnreachable);
  }
  pair_->requester->Start(PullOf(2));
  ASSERT_TRUE(pair_->Await([&] { return pair_->requester_heard.ended.contains(2); }));
}

// FAULTS C3: PLATFORM 2.4, the requester goes; the owner gets its pages back.
TEST_P(EngineContractTest, TheRequesterGoesInMidPull) {
  MakePages(64, 400'000);
  OfferAll();
  pair_->requester->Start(PullOf(1));
  ASSERT_TRUE(pair_->Await([&] { return Count(1, PageOutcome::kArrived) >= 1; }));
  pair_->requester.reset();
  to_.clear();  // written by nobody
  pair_->owner->Revoke(kGrant);
  AwaitGrantEnded();
  EXPECT_LE(pair_->owner_heard.grants[0].pages_sent, 64u);
}

TEST_P(EngineContractTest, NobodyThere) {  // FAULTS D6
  MakePages(3, 1000);
  Pull pull = PullOf(1);
  pull.address = "127.0.0.1:1";
  pair_->requester->Start(std::move(pull));
  AwaitEnd(1);
  EXPECT_EQ(Ended(1).status, PullStatus::kUnreachable);
}

TEST_P(EngineContractTest, TooManyPullsEndAtOnce) {  // FAULTS D4
  pair_.reset();
  pair_ = GetParam()({.pulls = 2});
  MakePages(1, 1000);
  OfferAll();
  for (uint64_t id = 1; id <= 3; ++id) pair_->requester->Start(PullOf(id));
  AwaitEnd(3);
  EXPECT_EQ(Ended(3).status, PullStatus::kOverloaded);
  ASSERT_TRUE(pair_->Await([&] { return pair_->requester_heard.ended.size() == 3; }));
  EXPECT_EQ(pair_->requester->counters().pulls, 3u);
  EXPECT_EQ(pair_->requester->counters().pulls_refused, 1u);
  pair_->requester->Start(PullOf(4));  // an end that was taken makes room
  AwaitEnd(4);
  EXPECT_NE(Ended(4).status, PullStatus::kOverloaded);
}

TEST_P(EngineContractTest, TooManyOffersAreNotTaken) {  // FAULTS D4
  pair_.reset();
  pair_ = GetParam()({.offers = 2});
  MakePages(1, 1000);
  OfferAll();
  EXPECT_TRUE(pair_->owner->Start(Offer{{1, 1}, {{from_[0]}}}));
  EXPECT_FALSE(pair_->owner->Start(Offer{{1, 2}, {{from_[0]}}}));
  EXPECT_EQ(pair_->owner->counters().offers_refused, 1u);
  pair_->owner->Revoke({1, 2});  // unknown, and so nothing
  pair_->owner->Revoke(kGrant);
  AwaitGrantEnded();
  EXPECT_TRUE(pair_->owner->Start(Offer{{1, 2}, {{from_[0]}}}));
}

// FAULTS D4, G3: what is repeated is not queued again, and has no effect.
TEST_P(EngineContractTest, RepeatedRevokesAndCancels) {
  MakePages(30, 100'000);
  OfferAll();
  pair_->requester->Start(PullOf(1));
  for (int i = 0; i < 10'000; ++i) {
    pair_->requester->Cancel(1);
    pair_->requester->Cancel(2);
    pair_->owner->Revoke(kGrant);
    pair_->owner->Revoke({3, 3});
  }
  AwaitEnd(1);
  AwaitGrantEnded();
  pair_->owner->Revoke(kGrant);
  pair_->requester->Cancel(1);
  EXPECT_EQ(pair_->owner_heard.grants.size(), 1u);
  ASSERT_TRUE(pair_->owner->Start(Offer{{5, 5}, {{from_[0]}}}));
  pair_->requester->Start(
      Pull{2, pair_->owner_address, {5, 5}, pair_->Now() + kSecond, {PullOf(2).pages[0]}});
  ASSERT_TRUE(pair_->Await([&] { return pair_->requester_heard.ended.contains(2); }));
  EXPECT_EQ(Ended(2).status, PullStatus::kOk);
}

INSTANTIATE_TEST_SUITE_P(Loopback, EngineContractTest, testing::Values(&MakeLoopbackPair));
INSTANTIATE_TEST_SUITE_P(Ucx, EngineContractTest, testing::Values(&MakeUcxPair));
INSTANTIATE_TEST_SUITE_P(Process, EngineContractTest, testing::Values(&MakeProcessPair));
INSTANTIATE_TEST_SUITE_P(UcxRendezvous, EngineContractTest,
                         testing::Values(&MakeUcxRendezvousPair));

}  // namespace
}  // namespace pando
