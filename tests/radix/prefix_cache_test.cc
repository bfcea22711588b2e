#include "radix/prefix_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace pando {
namespace {

constexpr BlockCount kAll(UINT32_MAX);

// Everything with real keys, and with keys that all collide (FAULTS A8).
class PrefixCacheTest : public testing::TestWithParam<bool> {
 protected:
  PrefixCacheTest()
      : cache_(
            {.key_secret = "", .space_share = 1.0, .collide = GetParam(), .extent_pages_max = 0}) {
    for (uint32_t e = 0; e < 6; ++e) EXPECT_TRUE(cache_.AddExtent(ExtentId(e)));
  }
  void TearDown() override { EXPECT_EQ(cache_.CheckInvariants(), ""); }

  SpaceId Space(const std::string& identity, uint32_t block, Bytes page = Bytes(1),
                uint32_t shards = 1) {
    return *cache_.AddSpace(
        {.identity = identity, .block_tokens = block, .page_bytes = page, .shards = shards});
  }
  uint32_t Store(SpaceId space, const Prompt& prompt) {
    const Reservation made = cache_.Reserve(space, prompt, kAll, 1);
    if (made.status != ReserveStatus::kOk) return 0;
    for (uint32_t s = 0; s < cache_.shape(space).shards; ++s) {
      std::vector<PageView> views;
      EXPECT_TRUE(cache_.Hold(made.path, made.from, made.to, ShardId(s), &views));
      for (uint32_t i = 0; i < views.size(); ++i) {
        EXPECT_TRUE(cache_.Commit(made.path, BlockCount(made.from.value() + i), ShardId(s),
                                  views[i].page, i));
      }
      cache_.Release(views);
    }
    cache_.Finish(made);
    return made.to.value() - made.from.value();
  }
  uint32_t Found(SpaceId space, const Prompt& prompt) {
    return cache_.Find(space, prompt, kAll).blocks.value();
  }

  PrefixCache cache_;
};

// FAULTS A9: whole blocks only.
TEST_P(PrefixCacheTest, OnlyWholeBlocks) {
  const SpaceId space = Space("m", 4);
  const std::vector<uint32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(Store(space, {tokens, {}, {}}), 2u);
  for (size_t n = 0; n <= tokens.size(); ++n) {
    EXPECT_EQ(Found(space, {{tokens.data(), n}, {}, {}}), n / 4) << n;
  }
  EXPECT_EQ(cache_.Find(space, {tokens, {}, {}}, BlockCount(1)).blocks, BlockCount(1));
}

// The check of them all takes one look each, not one at every pair.
TEST_P(PrefixCacheTest, ManySiblingsAreChecked) {
  const uint32_t siblings = GetParam() ? 300 : 60'000;  // keys that collide are searched one by one
  const SpaceId space = Space("m", 1);
  for (uint32_t token = 0; token < siblings; ++token) {
    ASSERT_EQ(Store(space, {{&token, 1}, {}, {}}), 1u);
  }
  EXPECT_EQ(cache_.CheckInvariants(), "");
  EXPECT_EQ(cache_.stats(space).blocks, siblings);
}

// FAULTS A2: another scope, another block; equal scopes whatever the segments' number.
TEST_P(PrefixCacheTest, ScopesAreContent) {
  const SpaceId space = Space("m", 2);
  const std::vector<uint32_t> tokens{1, 2, 3, 4, 5, 6};
  const std::vector<Segment> a{{"", TokenCount(3)}, {"tenant/a", TokenCount(6)}};
  const std::vector<Segment> b{{"", TokenCount(3)}, {"tenant/b", TokenCount(6)}};
  const std::vector<Segment> early{{"", TokenCount(4)}, {"tenant/a", TokenCount(6)}};
  const std::vector<Segment> twice{
      {"", TokenCount(1)}, {"", TokenCount(3)}, {"tenant/a", TokenCount(6)}};
  EXPECT_EQ(Store(space, {tokens, a, {}}), 3u);
  EXPECT_EQ(Found(space, {tokens, a, {}}), 3u);
  EXPECT_EQ(Found(space, {tokens, twice, {}}), 3u);
  EXPECT_EQ(Found(space, {tokens, b, {}}), 1u);
  EXPECT_EQ(Found(space, {tokens, {}, {}}), 1u);
  EXPECT_EQ(Found(space, {tokens, early, {}}), 1u) << "its second block is public";
  EXPECT_EQ(Store(space, {tokens, b, {}}), 2u);
}

// FAULTS A3: names that join alike are different paths.
TEST_P(PrefixCacheTest, ScopePathsAreNotJoined) {
  const SpaceId space = Space("m", 1);
  const std::vector<uint32_t> tokens{1, 2};
  const std::vector<Segment> one{{"ab", TokenCount(1)}, {"c", TokenCount(2)}};
  const std::vector<Segment> two{{"a", TokenCount(1)}, {"bc", TokenCount(2)}};
  EXPECT_EQ(Store(space, {tokens, one, {}}), 2u);
  EXPECT_EQ(Found(space, {tokens, two, {}}), 0u);
}

// FAULTS A6: whole extra bytes count, at their block.
TEST_P(PrefixCacheTest, ExtrasAreContent) {
  const SpaceId space = Space("m", 2);
  const std::vector<uint32_t> tokens{1, 2, 3, 4, 5, 6};
  const std::vector<BlockExtra> image{{BlockCount(1), "digest-0001"}};
  const std::vector<BlockExtra> other{{BlockCount(1), "digest-0002"}};
  const std::vector<BlockExtra> later{{BlockCount(2), "digest-0001"}};
  EXPECT_EQ(Store(space, {tokens, {}, image}), 3u);
  EXPECT_EQ(Found(space, {tokens, {}, image}), 3u);
  EXPECT_EQ(Found(space, {tokens, {}, other}), 1u);
  EXPECT_EQ(Found(space, {tokens, {}, later}), 1u);
  EXPECT_EQ(Found(space, {tokens, {}, {}}), 1u);
}

TEST_P(PrefixCacheTest, NothingCrossesASpace) {
  const SpaceId one = Space("m1", 2), two = Space("m2", 2);
  const std::vector<uint32_t> tokens{1, 2, 3, 4};
  EXPECT_EQ(Store(one, {tokens, {}, {}}), 2u);
  EXPECT_EQ(Found(two, {tokens, {}, {}}), 0u);
}

// FAULTS G1.
TEST_P(PrefixCacheTest, SizesAtTheirLimits) {
  const std::vector<uint32_t> limits{0, 0xffffffff, 0x80000000, 1};
  const SpaceId large = Space("large", 1, Bytes(8ull << 20), 2);
  EXPECT_EQ(Found(large, {{}, {}, {}}), 0u);
  EXPECT_EQ(Store(large, {{}, {}, {}}), 0u);
  EXPECT_EQ(Store(large, {limits, {}, {}}), 4u);
  EXPECT_EQ(Found(large, {limits, {}, {}}), 4u);
  const SpaceId small = Space("small", 16);
  std::vector<uint32_t> million(1'000'000);
  for (uint32_t i = 0; i < million.size(); ++i) million[i] = i * 2654435761u;
  EXPECT_EQ(Store(small, {million, {}, {}}), 62'500u);
  EXPECT_EQ(Found(small, {million, {}, {}}), 62'500u);
  million[500'000] ^= 1;
  EXPECT_EQ(Found(small, {million, {}, {}}), 31'250u);
}

// A chain that grows block by block becomes few runs.
TEST_P(PrefixCacheTest, ADecodedChainIsJoined) {
  const SpaceId space = Space("m", 1);
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 2000; ++i) {
    tokens.push_back(i);
    EXPECT_EQ(Store(space, {tokens, {}, {}}), 1u);
  }
  EXPECT_EQ(Found(space, {tokens, {}, {}}), 2000u);
  EXPECT_LE(cache_.stats(space).runs, 5u);
}

TEST_P(PrefixCacheTest, AnEmptyExtentServesAnotherSpace) {
  const SpaceId one = Space("m1", 1, Bytes(8ull << 20)), two = Space("m2", 1, Bytes(1));
  std::vector<uint32_t> tokens(48);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = i;
  EXPECT_EQ(Store(one, {tokens, {}, {}}), 48u);
  EXPECT_EQ(cache_.extents_unowned(), 0u);
  EXPECT_EQ(cache_.Reserve(two, {tokens, {}, {}}, kAll, 1).status, ReserveStatus::kFull);
  EXPECT_EQ(cache_.ReleaseEmptyExtents(one), 0u);
  EXPECT_EQ(cache_.Evict(one, BlockCount(48)), BlockCount(48));
  EXPECT_EQ(cache_.ReleaseEmptyExtents(one), 6u);
  EXPECT_EQ(Store(two, {tokens, {}, {}}), 48u);
}

// Two readers of one claim find two bad pages, the lower one first. The path's last run goes whole,
// and its name with it; what stands above is still found and cut.
//
//   [a b] ─┬─ [c d]   the claim's      c is dropped, then a: nothing is left
//          └─ [x]
TEST_P(PrefixCacheTest, ADropFindsWhatStillStandsOfThePath) {
  const SpaceId space = Space("m", 1, Bytes(1), 2);
  const std::vector<uint32_t> tokens{1, 2, 3, 4}, branch{1, 2, 8};
  for (uint32_t higher = 0; higher < 2; ++higher) {
    ASSERT_EQ(Store(space, {tokens, {}, {}}), 4u);
    ASSERT_EQ(Store(space, {branch, {}, {}}), 1u);
    const PathRef path = *cache_.Pin(cache_.Find(space, {tokens, {}, {}}, kAll));
    std::vector<PageView> views;
    ASSERT_TRUE(cache_.Hold(path, BlockCount(0), BlockCount(4), ShardId(1), &views));
    EXPECT_TRUE(cache_.Drop(path, BlockCount(2), ShardId(1), views[2].page));
    EXPECT_EQ(Found(space, {tokens, {}, {}}), 2u);
    EXPECT_FALSE(cache_.Drop(path, BlockCount(3), ShardId(1), views[3].page)) << "gone with c";
    EXPECT_FALSE(cache_.Drop(path, BlockCount(1), ShardId(0), views[1].page)) << "shard 1's";
    EXPECT_TRUE(cache_.Drop(path, BlockCount(higher), ShardId(1), views[higher].page));
    EXPECT_EQ(Found(space, {tokens, {}, {}}), higher);
    EXPECT_EQ(Found(space, {branch, {}, {}}), higher);
    cache_.Release(views);
    cache_.Unpin(path);
    EXPECT_EQ(cache_.CheckInvariants(), "") << "block " << higher;
    EXPECT_EQ(cache_.Evict(space, kAll), BlockCount(higher));
  }
}

// A writer's second reservation goes off inside its first one's blocks, which nobody has written
// yet.
//
//   first    [a b c d]      second, from x on    [a b] ─┬─ [c d]
//                                                       └─ [x y]
//
// When the first one can no longer finish a and b, nobody can: they go, and x and y with them. A
// page that is being written belongs to a reservation that can still commit it (FAULTS B5).
TEST_P(PrefixCacheTest, WhatNobodyCanFinishGoesAtOnce) {
  const SpaceId space = Space("m", 1, Bytes(1), 2);
  const std::vector<uint32_t> tokens{1, 2, 3, 4}, branch{1, 2, 8, 9};
  for (uint32_t drop = 0; drop <= tokens.size(); ++drop) {
    const Reservation first = cache_.Reserve(space, {tokens, {}, {}}, kAll, 1);
    const Reservation second = cache_.Reserve(space, {branch, {}, {}}, kAll, 1);
    ASSERT_EQ(second.status, ReserveStatus::kOk);
    ASSERT_EQ(second.from, BlockCount(2));
    std::vector<PageView> views;
    ASSERT_TRUE(cache_.Hold(first.path, first.from, first.to, ShardId(0), &views));
    cache_.Release(views);
    if (drop < tokens.size()) {
      ASSERT_TRUE(cache_.Drop(first.path, BlockCount(drop), ShardId(0), views[drop].page));
      // Above d, that is the end of one path or both; after d, the first still has c to write.
      EXPECT_EQ(cache_.stats(space).blocks, drop == 3 ? 5u : 0u) << "block " << drop;
    }
    cache_.Finish(first);
    EXPECT_EQ(cache_.stats(space).blocks, 0u) << "block " << drop;
    EXPECT_EQ(cache_.stats(space).pages.reserved, 0u) << "block " << drop;
    views.clear();
    EXPECT_FALSE(cache_.Hold(second.path, second.from, second.to, ShardId(0), &views));
    cache_.Finish(second);
    EXPECT_EQ(cache_.CheckInvariants(), "") << "block " << drop;
  }
}

TEST(ValidatePromptTest, SaysWhatIsWrong) {
  const std::vector<uint32_t> tokens(5);
  const std::vector<Segment> back{{"", TokenCount(5)}, {"a", TokenCount(5)}};
  const std::vector<Segment> open{{"", TokenCount(4)}};
  const std::vector<BlockExtra> far{{BlockCount(3), "x"}};
  EXPECT_EQ(ValidatePrompt({tokens, {}, {}}, 2), "");
  EXPECT_NE(ValidatePrompt({tokens, back, {}}, 2).find("must ascend"), std::string::npos);
  EXPECT_NE(ValidatePrompt({tokens, open, {}}, 2).find("must end with"), std::string::npos);
  EXPECT_NE(ValidatePrompt({tokens, {}, far}, 2).find("3 blocks"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Keys, PrefixCacheTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "AllCollide" : "Real"; });

}  // namespace
}  // namespace pando
