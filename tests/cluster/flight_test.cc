// One computes, the others wait, across nodes (FAULTS E7): and every way in which that ends.
#include <gtest/gtest.h>

#include "tests/cluster/cluster_driver.h"

namespace pando::testing {
namespace {

constexpr uint32_t kBlocks = 10;

class Flight : public ::testing::Test {
 protected:
  // Node `i` says that it computes the prompt, and is the first.
  void Compute(uint32_t i) {
    const AcquireAnswer answer = cluster.Acquire(i, request, prompt, /*compute=*/true);
    EXPECT_EQ(answer.ticket, 0u);
  }
  // Node `i` wants it, and is told that somebody makes it.
  uint64_t Wait(uint32_t i, Nanos patience = 10 * kSecond) {
    const AcquireAnswer answer = cluster.Acquire(i, request, prompt, /*compute=*/true);
    EXPECT_TRUE(answer.in_flight);
    EXPECT_NE(answer.ticket, 0u);
    return cluster.node(i).Await(cluster.engine(i), answer.ticket, cluster.now() + patience);
  }
  bool Answered(uint32_t i, uint64_t serial) { return cluster.node(i).awaited.contains(serial); }
  AwaitAnswer AnswerTo(uint32_t i, uint64_t serial) {
    EXPECT_TRUE(Answered(i, serial));
    return BodyOf<AwaitAnswer>(cluster.node(i).awaited[serial]);
  }
  void End(uint32_t i, const AwaitAnswer& answer = {}) {
    cluster.LoadAndSettle(i, request, prompt, answer.claim, answer.blocks);
  }
  void Settle(uint32_t i) { cluster.node(i).Settle(cluster.engine(i), {.request = request}); }
  // What the computing replica stores belongs to its request.
  void StoreOfRequest(uint32_t i) {
    CoreDriver& node = cluster.node(i);
    const auto reserved = BodyOf<ReserveAnswer>(
        node.Send(cluster.engine(i).scheduler, ReserveRequest{request, {}, {}, 0, kBlocks, 0}));
    cluster.Store(i, prompt, reserved.claim);
  }
  void ExpectRest() {
    cluster.Advance(60 * kSecond);
    cluster.ExpectBase();
    cluster.ExpectConverged();
  }

  ClusterDriver cluster{3};
  const PromptData prompt = BlocksPrompt(1, kBlocks);
  const RequestId request{9};
};

TEST_F(Flight, WhatOneNodeComputesAnotherWaitsForAndGets) {
  Compute(0);
  cluster.Advance(kTold);
  const uint64_t wait = Wait(1);
  cluster.Advance(kSecond);
  EXPECT_FALSE(Answered(1, wait));
  StoreOfRequest(0);
  cluster.Advance(2 * kTold);
  EXPECT_EQ(AnswerTo(1, wait).blocks, kBlocks);
  End(1, AnswerTo(1, wait));
  EXPECT_EQ(cluster.node(1).status().account.hit_peer, kBlocks * kBlock);
  Settle(0);
  ExpectRest();
}

TEST_F(Flight, TheComputingNodesDeathWakesWhoWaits) {
  Compute(0);
  cluster.Advance(kTold);
  const uint64_t wait = Wait(1);
  cluster.Crash(0);
  cluster.Settle();
  EXPECT_EQ(AnswerTo(1, wait).blocks, 0u);
  EXPECT_FALSE(AnswerTo(1, wait).in_flight) << "it computes now itself";
  cluster.Advance(kTold);
  const uint64_t third = Wait(2);  // for node 1, which was told to
  StoreOfRequest(1);
  cluster.Advance(2 * kTold);
  EXPECT_EQ(AnswerTo(2, third).blocks, kBlocks);
  End(2, AnswerTo(2, third));
  Settle(1);
}

TEST_F(Flight, TheComputingReplicasDeathWakesWhoWaits) {
  Compute(0);
  cluster.Advance(kTold);
  const uint64_t wait = Wait(1);
  cluster.node(0).KillEngine(cluster.engine(0));
  cluster.Advance(kTold);
  EXPECT_FALSE(AnswerTo(1, wait).in_flight);
  End(1);
  ExpectRest();
}

TEST_F(Flight, ARefusedReservationWakesWhoWaits) {
  Compute(0);
  cluster.Advance(kTold);
  const uint64_t wait = Wait(1);
  Settle(0);  // the request ends without a store, as one that found no room does
  cluster.Advance(kTold);
  EXPECT_FALSE(AnswerTo(1, wait).in_flight);
  End(1);
  ExpectRest();
}

TEST_F(Flight, ADeadlineEndsTheWait) {
  Compute(0);
  cluster.Advance(kTold);
  const uint64_t wait = Wait(1, kSecond);
  cluster.Advance(kSecond);
  EXPECT_EQ(AnswerTo(1, wait).blocks, 0u);
  EXPECT_TRUE(AnswerTo(1, wait).in_flight) << "it may be awaited again";
  End(1);
  Settle(0);
  ExpectRest();
}

TEST_F(Flight, OfCrossedIntentsBothComputeAndThirdsHearOfOne) {
  Compute(1);
  Compute(0);  // neither has heard of the other
  cluster.Advance(kTold);
  EXPECT_EQ(cluster.node(0).status().tickets, 0u);
  EXPECT_EQ(cluster.node(1).status().tickets, 0u);
  const uint64_t wait = Wait(2);
  Settle(1);  // the higher one ends without a block: the third waits for the lower one
  cluster.Advance(kTold);
  EXPECT_FALSE(Answered(2, wait));
  StoreOfRequest(0);
  cluster.Advance(2 * kTold);
  EXPECT_EQ(AnswerTo(2, wait).blocks, kBlocks);
  End(2, AnswerTo(2, wait));
  Settle(0);
  ExpectRest();
}

TEST_F(Flight, APartitionFromWhoComputesIsNotWaitedOutForEver) {
  Compute(0);
  cluster.Advance(kTold);
  const uint64_t wait = Wait(1, 25 * kSecond);
  cluster.net().Partition(0, 1, true);
  cluster.Advance(20 * kSecond);
  EXPECT_FALSE(AnswerTo(1, wait).in_flight) << "its feed has been silent for too long";
  End(1);
  cluster.net().Partition(0, 1, false);
  Settle(0);
  ExpectRest();
}

}  // namespace
}  // namespace pando::testing
