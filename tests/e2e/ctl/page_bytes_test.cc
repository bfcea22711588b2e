#include "client/ctl/page_bytes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "client/ctl/engine_kv.h"

namespace pando::ctl {
namespace {

std::vector<uint32_t> Ascending(size_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100u);
  return tokens;
}

std::vector<std::byte> Page(uint64_t chain, uint32_t shard, size_t bytes) {
  std::vector<std::byte> page(bytes);
  PageBytes(chain, shard).Fill(0, page);
  return page;
}

TEST(BlockChainTest, HasOneStateForEachFullBlock) {
  EXPECT_EQ(BlockChain(Ascending(0), 16).size(), 0u);
  EXPECT_EQ(BlockChain(Ascending(15), 16).size(), 0u);
  EXPECT_EQ(BlockChain(Ascending(16), 16).size(), 1u);
  EXPECT_EQ(BlockChain(Ascending(100), 16).size(), 6u);
}

TEST(BlockChainTest, StandsForAllTokensBeforeIt) {
  const std::vector<uint32_t> tokens = Ascending(64);
  const std::vector<uint64_t> chain = BlockChain(tokens, 16);
  for (size_t changed = 0; changed < tokens.size(); ++changed) {
    std::vector<uint32_t> other = tokens;
    other[changed] ^= 1;
    const std::vector<uint64_t> other_chain = BlockChain(other, 16);
    for (size_t block = 0; block < 4; ++block) {
      EXPECT_EQ(chain[block] == other_chain[block], block < changed / 16)
          << "token " << changed << " block " << block;
    }
  }
}

TEST(BlockChainTest, TellsPositionsAndBlockSizesApart) {
  const std::vector<uint64_t> same_block_again = BlockChain(std::vector<uint32_t>(160, 7), 16);
  EXPECT_EQ(std::set<uint64_t>(same_block_again.begin(), same_block_again.end()).size(), 10u);
  const std::vector<uint32_t> tokens = Ascending(64);
  EXPECT_NE(BlockChain(tokens, 32)[0], BlockChain(tokens, 16)[1]);
}

TEST(PageBytesTest, FollowFromPrefixAndShard) {
  const std::vector<uint64_t> chain = BlockChain(Ascending(64), 16);
  std::set<std::vector<std::byte>> pages;
  for (const uint64_t state : chain) {
    for (uint32_t shard = 0; shard < 4; ++shard) pages.insert(Page(state, shard, 32));
  }
  EXPECT_EQ(pages.size(), 16u);
  EXPECT_EQ(Page(chain[2], 1, 4096), Page(chain[2], 1, 4096));
}

TEST(PageBytesTest, EveryByteCounts) {
  for (const size_t size : {1, 7, 8, 9, 64, 100, 4096}) {
    std::vector<std::byte> page = Page(1, 0, size);
    ASSERT_TRUE(PageBytes(1, 0).Equal(0, page)) << size;
    for (size_t i = 0; i < size; ++i) {
      page[i] ^= std::byte{0x10};
      EXPECT_FALSE(PageBytes(1, 0).Equal(0, page)) << "byte " << i << " of " << size;
      page[i] ^= std::byte{0x10};
    }
  }
}

TEST(EngineKvTest, HoldsWhatWasComputedInEverySlot) {
  for (const uint64_t size : {1, 2, 8, 17, 63, 64, 4096, 100'001}) {
    EngineKv kv(size);
    for (uint32_t slot = 0; slot < kv.slots(); ++slot) kv.Compute(slot, PageBytes(slot, 3));
    for (uint32_t slot = 0; slot < kv.slots(); ++slot) {
      size_t sum = 0;
      for (const auto piece : kv.pieces(slot)) sum += piece.size();
      EXPECT_EQ(sum, size);
      EXPECT_TRUE(kv.Holds(slot, PageBytes(slot, 3))) << size << " slot " << slot;
    }
  }
}

TEST(EngineKvTest, ASpoiledSlotCannotPass) {
  for (const uint64_t size : {1, 2, 8, 17, 4096}) {
    EngineKv kv(size);
    kv.Compute(0, PageBytes(9, 0));
    kv.Spoil(0);
    EXPECT_FALSE(kv.Holds(0, PageBytes(9, 0))) << size;
  }
}

TEST(EngineKvTest, APageIsScattered) {
  EXPECT_EQ(EngineKv(4096).pieces(0).size(), 8u);
  EXPECT_EQ(EngineKv(8ull << 20).slots(), 1u);
}

}  // namespace
}  // namespace pando::ctl
