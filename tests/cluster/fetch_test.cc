// Nodes that share what they hold: fetches, and every way in which they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/cluster_driver.h"

namespace pando::testing {
namespace {

constexpr uint32_t kBlocks = 12;

TEST(Fetch, WhatOneNodeComputedTheOthersGet) {
  ClusterDriver cluster(3);
  const PromptData prompt = BlocksPrompt(1, kBlocks);
  EXPECT_EQ(cluster.Compute(0, prompt), kBlocks);
  cluster.Advance(kTold);
  cluster.ExpectConverged();
  EXPECT_EQ(cluster.Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster.Get(2, prompt), kBlocks);
  EXPECT_EQ(cluster.node(1).status().account.hit_peer, kBlocks * kBlock);
  EXPECT_EQ(cluster.node(1).status().account.hit_host, 0u);
  // What was fetched is held, and told, and hit here the next time.
  EXPECT_EQ(cluster.Get(1, prompt), kBlocks);
  EXPECT_EQ(cluster.node(1).status().account.hit_host, kBlocks * kBlock);
  cluster.Advance(kTold);
  cluster.ExpectConverged();
  cluster.Advance(kSecond);
  cluster.ExpectBase();
}

}  // namespace
}  // namespace pando::testing
