// The faults that a LoopbackNetwork can be told of.
#include <gtest/gtest.h>

#include <random>

#include "tests/transfer/engine_pair.h"
#include "transfer/loopback/loopback_engine.h"
#include "transfer/memory/page_copy.h"

namespace pando {
namespace {

class LoopbackTest : public testing::Test {
 protected:
  void SetUp() override {
    network_.SetTime(1);
    owner_ = network_.Add("owner");
    requester_ = network_.Add("requester");
    ASSERT_TRUE(owner_->Start(Offer{{1, 2}, {{from_}}}));
  }
  void Start(Nanos deadline) {
    requester_->Start(Pull{1, "owner", {1, 2}, deadline, {{0, PageChecksum(from_), to_}}});
  }
  void Settle() {
    while (network_.Step()) {
    }
    Hear();
  }
  void Hear() {
    std::vector<TransferEvent> events;
    requester_->TakeEvents(&events);
    heard_.Add(events);
    events.clear();
    owner_->TakeEvents(&events);
    owner_heard_.Add(events);
  }

  std::vector<std::byte> from_{1000, std::byte{3}}, to_{1000, std::byte{0}};
  LoopbackNetwork network_{{.limits = {.stall_timeout = 100}}};
  std::unique_ptr<LoopbackEngine> owner_, requester_;
  Heard heard_, owner_heard_;
};

TEST_F(LoopbackTest, ACorruptPageIsBad) {
  network_.SetFate([](auto&, auto&, LoopbackMessage kind) {
    return LoopbackFate{.corrupt = kind == LoopbackMessage::kPage};
  });
  Start(1000);
  Settle();
  EXPECT_EQ(heard_.Count(1, PageOutcome::kBad), 1u);
}

TEST_F(LoopbackTest, ADelayedMessageComesAtItsTime) {
  network_.SetFate([](auto&, auto&, LoopbackMessage) { return LoopbackFate{.delay = 20}; });
  Start(1000);
  Settle();
  EXPECT_TRUE(heard_.ended.empty());
  ASSERT_EQ(network_.NextTime(), 21);
  network_.SetTime(21);
  Settle();
  network_.SetTime(41);
  Settle();
  EXPECT_EQ(heard_.Count(1, PageOutcome::kArrived), 1u);
}

// FAULTS D6: nobody hears of a partition; the stall timeout ends it on both sides.
TEST_F(LoopbackTest, APartitionEndsByTheStallTimeout) {
  Start(1000);
  ASSERT_TRUE(network_.Step());  // the owner has been asked
  network_.Partition("owner", "requester", true);
  owner_->Revoke({1, 2});
  Settle();
  EXPECT_TRUE(heard_.ended.empty());
  EXPECT_TRUE(owner_heard_.grants.empty()) << "it is still being sent";
  network_.SetTime(101);
  Settle();
  EXPECT_EQ(heard_.ended.at(1).status, PullStatus::kUnreachable);
  EXPECT_EQ(owner_heard_.grants.size(), 1u);
  EXPECT_EQ(requester_->counters().connections_stalled, 1u);
  network_.Partition("owner", "requester", false);
  Settle();
  EXPECT_EQ(to_, std::vector<std::byte>(1000, std::byte{0})) << "nothing comes late";
}

// FAULTS B2: an accepted page outlives the deadline until it has landed.
TEST_F(LoopbackTest, APageThatIsBeingWrittenKeepsItsOutcome) {
  Start(50);
  ASSERT_TRUE(network_.Step());
  ASSERT_TRUE(network_.Step());  // accepted
  network_.SetTime(50);
  Hear();
  EXPECT_TRUE(heard_.ended.empty());
  Settle();
  EXPECT_EQ(heard_.Count(1, PageOutcome::kArrived), 1u);
}

TEST_F(LoopbackTest, WhatIsLostStalls) {
  network_.SetFate([](auto&, auto&, LoopbackMessage) { return LoopbackFate{.drop = true}; });
  Start(1000);
  Settle();
  network_.SetTime(101);
  Settle();
  EXPECT_EQ(heard_.ended.at(1).status, PullStatus::kUnreachable);
}

// FAULTS G4: nobody guesses one of 128 bits that are drawn, and what is nearly right is wrong.
TEST(LoopbackGuessTest, AMillionGuessesAreRefusedAndCounted) {
  LoopbackNetwork network({});
  const auto owner = network.Add("owner"), guesser = network.Add("guesser");
  const std::vector<std::byte> from(8, std::byte{3});
  std::vector<std::byte> to(8);
  std::mt19937_64 random(1);
  std::vector<GrantId> grants;
  for (int i = 0; i < 4096; ++i) {
    grants.push_back({random(), random()});
    ASSERT_TRUE(owner->Start(Offer{grants.back(), {{from}}}));
  }
#ifdef PANDO_SANITIZED
  constexpr uint64_t kGuesses = 100'000;
#else
  constexpr uint64_t kGuesses = 1'000'000;
#endif
  uint64_t refused = 0;
  for (uint64_t guess = 1; guess <= kGuesses; ++guess) {
    GrantId id{random(), random()};
    if (guess % 2 == 0) {
      id = grants[random() % grants.size()];
      (random() % 2 == 0 ? id.high : id.low) ^= uint64_t{1} << random() % 64;
    }
    guesser->Start(Pull{guess, "owner", id, 1000, {{0, PageChecksum(from), to}}});
    while (network.Step()) {
    }
    std::vector<TransferEvent> events;
    guesser->TakeEvents(&events);
    refused += std::get<PullEnded>(events.back()).status == PullStatus::kRefused ? 1 : 0;
  }
  EXPECT_EQ(refused, kGuesses);
  EXPECT_EQ(owner->counters().refused_grants, kGuesses);
  EXPECT_EQ(owner->counters().pages_sent, 0u);
  EXPECT_EQ(to, std::vector<std::byte>(8));
}

TEST(LoopbackBreakTest, BothHearOfIt) {
  LoopbackNetwork network({});
  const auto owner = network.Add("owner"), requester = network.Add("requester");
  const std::vector<std::byte> from(1000, std::byte{3});
  std::vector<std::byte> to(1000);
  ASSERT_TRUE(owner->Start(Offer{{1, 2}, {{from}}}));
  requester->Start(Pull{1, "owner", {1, 2}, 1000, {{0, PageChecksum(from), to}}});
  ASSERT_TRUE(network.Step());  // asked: the page is on its way
  network.Break("owner", "requester");
  owner->Revoke({1, 2});
  std::vector<TransferEvent> events;
  requester->TakeEvents(&events);
  owner->TakeEvents(&events);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(std::get<PullPages>(events[0]).pages.front().outcome, PageOutcome::kFailed);
  EXPECT_EQ(std::get<PullEnded>(events[1]).status, PullStatus::kUnreachable);
  EXPECT_EQ(std::get<GrantEnded>(events[2]).pages_sent, 0u);
}

TEST(LoopbackBytesTest, ASimulationMayCarryNone) {
  LoopbackNetwork network({.limits = {}, .carry_bytes = false});
  const auto owner = network.Add("owner"), requester = network.Add("requester");
  const std::vector<std::byte> from(10);
  std::vector<std::byte> to(10, std::byte{9});
  ASSERT_TRUE(owner->Start(Offer{{1, 1}, {{from}}}));
  requester->Start(Pull{1, "owner", {1, 1}, 100, {{0, 12345, to}}});
  while (network.Step()) {
  }
  Heard heard;
  std::vector<TransferEvent> events;
  requester->TakeEvents(&events);
  heard.Add(events);
  EXPECT_EQ(heard.Count(1, PageOutcome::kArrived), 1u);
  EXPECT_EQ(to[0], std::byte{9});
}

}  // namespace
}  // namespace pando
