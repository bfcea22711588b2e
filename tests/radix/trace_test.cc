// Hit rates on the conversation trace: equal to a flat LRU model over blocks, to the token.
#include "tests/model/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <unordered_map>

#include "radix/prefix_cache.h"
#include "tests/paths.h"

namespace pando {
namespace {

// The independent model: blocks are named by a number for their whole prefix; an own tail is unlike
// all others. A request's hits are its leading resident blocks; then room is made (its own blocks
// stay), and its blocks are used tail first.
class FlatLru {
 public:
  explicit FlatLru(size_t capacity) : capacity_(capacity) {}

  size_t Request(const std::vector<uint64_t>& blocks) {
    size_t hits = 0;
    while (hits < blocks.size() && where_.count(blocks[hits]) > 0) ++hits;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) Use(*block);
    while (order_.size() > capacity_) {
      where_.erase(order_.front());
      order_.pop_front();
    }
    return hits;
  }

 private:
  void Use(uint64_t block) {
    const auto at = where_.find(block);
    if (at != where_.end()) order_.erase(at->second);
    where_[block] = order_.insert(order_.end(), block);
  }

  const size_t capacity_;
  std::list<uint64_t> order_;  // oldest first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> where_;
};

class TraceCache {
 public:
  TraceCache(uint32_t block_tokens, uint32_t capacity)
      : cache_({.key_secret = "", .space_share = 1.0, .extent_pages_max = ExtentPages(capacity)}) {
    const uint32_t extents = capacity / ExtentPages(capacity);
    for (uint32_t e = 0; e < extents; ++e) cache_.AddExtent(ExtentId(e));
    space_ = *cache_.AddSpace({.identity = "trace",
                               .block_tokens = block_tokens,
                               .page_bytes = kPageStrideMin,
                               .shards = 1});
  }

  size_t Request(const std::vector<uint32_t>& tokens) {
    const Prompt prompt{tokens, {}, {}};
    const BlockCount all(UINT32_MAX);
    const Match match = cache_.Find(space_, prompt, all);
    const std::optional<PathRef> path = cache_.Pin(match);
    const Reservation made = cache_.Reserve(space_, prompt, all, 1);
    EXPECT_TRUE(made.status == ReserveStatus::kOk || made.status == ReserveStatus::kNothing);
    if (made.status == ReserveStatus::kOk) {
      std::vector<PageView> views;
      EXPECT_TRUE(cache_.Hold(made.path, made.from, made.to, ShardId(0), &views));
      for (uint32_t i = 0; i < views.size(); ++i) {
        cache_.Commit(made.path, BlockCount(made.from.value() + i), ShardId(0), views[i].page, 1);
      }
      cache_.Release(views);
      cache_.Finish(made);
    }
    cache_.Unpin(*path);
    return match.blocks.value();
  }
  PrefixCache& cache() { return cache_; }

 private:
  // The capacity in equal extents of at most 16,384 pages.
  static uint32_t ExtentPages(uint32_t capacity) {
    uint32_t pages = std::min<uint32_t>(capacity, 1u << kPageIndexBits);
    while (capacity % pages != 0) --pages;
    return pages;
  }

  PrefixCache cache_;
  SpaceId space_;
};

const std::vector<model::TraceRequest>& Requests() {
  static const auto* requests = new std::vector<model::TraceRequest>(
      model::ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz"));
  return *requests;
}

TEST(TraceTest, EqualsAFlatLruToTheToken) {
  constexpr uint32_t kBlock = 16, kPerId = model::kTraceBlockTokens / kBlock;
  constexpr size_t kRequests = 2000;
  ASSERT_EQ(Requests().size(), 12'031u);
  for (const uint32_t capacity : {32'000u, 93'760u, 187'520u}) {
    FlatLru model(capacity);
    TraceCache cache(kBlock, capacity);
    std::vector<uint32_t> tokens;
    std::vector<uint64_t> blocks;
    uint64_t hits = 0;
    for (size_t r = 0; r < kRequests; ++r) {
      const model::TraceRequest& request = Requests()[r];
      tokens.clear();
      model::AppendTokens(request, r, true, &tokens);
      blocks.clear();
      for (size_t b = 0; b < tokens.size() / kBlock; ++b) {
        const size_t id = b / kPerId;
        const uint64_t name = id < request.full_ids() ? request.hash_ids[id] : (1ull << 40) + r;
        blocks.push_back(name * kPerId + b % kPerId);
      }
      const size_t found = cache.Request(tokens);
      ASSERT_EQ(found, model.Request(blocks)) << "request " << r << ", capacity " << capacity;
      hits += found;
    }
    EXPECT_GT(hits, 0u);
    EXPECT_EQ(cache.cache().CheckInvariants(), "");
  }
}

// Measured independently of this code: only full blocks of 512 tokens; hit tokens of all input
// tokens.
TEST(TraceTest, PublishedHitRates) {
  for (const auto& [capacity, rate] : {std::pair(5'860u, 0.1437), {10'000u, 0.2193}}) {
    TraceCache cache(model::kTraceBlockTokens, capacity);
    std::vector<uint32_t> tokens;
    uint64_t hit = 0, input = 0;
    for (size_t r = 0; r < Requests().size(); ++r) {
      tokens.clear();
      model::AppendTokens(Requests()[r], r, false, &tokens);
      hit += cache.Request(tokens) * model::kTraceBlockTokens;
      input += Requests()[r].input_length;
    }
    EXPECT_NEAR(static_cast<double>(hit) / static_cast<double>(input), rate, 0.00005) << capacity;
    EXPECT_EQ(cache.cache().CheckInvariants(), "");
  }
}

}  // namespace
}  // namespace pando
