// ClusterDriver: several cores with one engine each, joined by a PeerNet, with real bytes in their
// pages: what a page should hold follows from the prompt alone, so a wrong byte shows.
//
//   ClusterDriver cluster(3);
//   cluster.Settle();                        // hellos and feeds are done
//   cluster.Compute(0, Prompt(1, 8));        // node 0 computes and stores it
//   cluster.Advance(kFlush);                 // and tells the others
//   EXPECT_EQ(cluster.Get(1, Prompt(1, 8)), 8u);   // node 1 gets its blocks, verified
#ifndef PANDO_TESTS_CLUSTER_CLUSTER_DRIVER_H_
#define PANDO_TESTS_CLUSTER_CLUSTER_DRIVER_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/peer_net.h"
#include "tests/node/core/driver.h"

namespace pando::testing {

inline constexpr Nanos kMillisecond = 1'000'000;
// Long enough for what changed to be told.
inline constexpr Nanos kTold = 150 * kMillisecond;

class ClusterDriver {
 public:
  struct Options {
    uint32_t shards = 1;
    Bytes page_bytes{256};
    uint32_t extents = 1;
    uint32_t extent_pages = 0;  // as PrefixCache::Options::extent_pages_max
    uint64_t prefill_tokens_per_s = 0;
    LoopbackOptions transfers{};
  };
  explicit ClusterDriver(uint32_t nodes) : ClusterDriver(nodes, Options{}) {}
  ClusterDriver(uint32_t nodes, const Options& options);
  ~ClusterDriver();

  CoreDriver& node(uint32_t i) { return *members_[i].driver; }
  const Engine& engine(uint32_t i) const { return members_[i].engine; }
  PeerNet& net() { return net_; }
  Nanos now() const { return now_; }
  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  PeerStatus peer(uint32_t node, uint32_t of) const;

  // Delivers all that can be delivered now.
  void Settle();
  // Time passes, step by step, and all that becomes due is done.
  void Advance(Nanos by);
  // The node's process is gone with its memory; a new life of it starts.
  void Crash(uint32_t i);
  void Restart(uint32_t i);

  // Computes and stores all full blocks of the prompt that are not there; returns how many.
  uint32_t Compute(uint32_t i, const PromptData& prompt);
  // Writes and commits the pages of a reservation.
  void Store(uint32_t i, const PromptData& prompt, ClaimId claim);
  // Acquires, awaits if there is a ticket, loads and verifies, settles; returns the blocks.
  uint32_t Get(uint32_t i, const PromptData& prompt, Nanos patience = kSecond);
  // The parts of Get, for who wants to act in between.
  AcquireAnswer Acquire(uint32_t i, RequestId request, const PromptData& prompt,
                        bool compute = false);
  void LoadAndSettle(uint32_t i, RequestId request, const PromptData& prompt, ClaimId claim,
                     uint32_t blocks);
  RequestId NextRequest() { return RequestId(++last_request_); }

  uint64_t wrong() const { return wrong_; }
  std::span<std::byte> PageOf(uint32_t i, PageId page, Bytes bytes);
  // Every core is sound, and at base.
  void ExpectBase();
  void ExpectSound();
  // Every node's view of every other is what that one holds; all of it is under the budget.
  void ExpectConverged();

 private:
  struct Member {
    std::unique_ptr<CoreDriver> driver;
    Engine engine;
    std::map<PageId, std::vector<std::byte>> pages;
    uint64_t lives = 0;
  };

  void Build(uint32_t i);
  // What the page of that block and shard holds.
  std::vector<std::byte> Expected(const PromptData& prompt, uint32_t block, uint32_t shard) const;

  const Options options_;
  PeerNet net_;
  std::vector<Member> members_;
  Nanos now_ = kSecond;
  uint64_t last_request_ = 0;
  uint64_t wrong_ = 0;
};

}  // namespace pando::testing

#endif  // PANDO_TESTS_CLUSTER_CLUSTER_DRIVER_H_
