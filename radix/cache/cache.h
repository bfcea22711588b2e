// Cache: tree, page table and policy made one; what stands behind PrefixCache.
//
//   Tree       which chains of blocks there are                 (radix/tree)
//   PageTable  the state of each page                           (radix/pages)
//   Policy     which run loses its tail next                    (radix/evict)
//   Cache      pins, visibility, reservations, eviction, drops: keeps the three in step
//
// A path's pin counts in every run from its end up to the root, so that
//   a run is protected      if pins > 0 (then all above it is protected too)
//   a run is a candidate    if it has no children and pins == 0
//   what can be evicted     is exactly what is not protected: a number that is kept, not searched
// and a run with incomplete blocks is always protected, by the reservation that fills it; when that
// one's path loses its end, so do all its incomplete blocks go, though others may pin them.
//
// Threads: owner thread only.
#ifndef PANDO_RADIX_CACHE_CACHE_H_
#define PANDO_RADIX_CACHE_CACHE_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "radix/cache/told_keys.h"
#include "radix/evict/policy.h"
#include "radix/pages/page_table.h"
#include "radix/prefix_cache.h"
#include "radix/tree/tree.h"

namespace pando {

class Cache {
 public:
  explicit Cache(const PrefixCache::Options& options);

  void SetListener(BlockListener* listener);
  void set_now(Nanos now) { now_ = now; }
  std::optional<SpaceId> AddSpace(const SpaceShape& shape);
  const SpaceShape& shape(SpaceId space) const { return spaces_[space.value()].shape; }
  uint32_t spaces() const { return static_cast<uint32_t>(spaces_.size()); }
  PageTable& pages() { return pages_; }
  const PageTable& pages() const { return pages_; }

  Match Find(SpaceId space, const Prompt& prompt, BlockCount limit) const;
  void AppendKeys(const Match& match, const Prompt& prompt, BlockCount to,
                  std::vector<uint64_t>* lows) const;
  std::optional<uint64_t> ToldKey(const Match& match) const;
  std::optional<PathRef> Pin(const Match& match);
  void Unpin(PathRef path);

  Reservation Reserve(SpaceId space, const Prompt& prompt, BlockCount to, uint64_t writer,
                      BlockCount most);
  void Finish(const Reservation& reservation);

  bool Hold(PathRef path, BlockCount from, BlockCount to, ShardId shard,
            std::vector<PageView>* pages);
  BlockCount Commit(PathRef path, BlockCount from, ShardId shard, std::span<const PageView> pages,
                    std::span<const uint64_t> checksums);
  uint64_t PagesToWrite(const Reservation& reservation) const;
  bool Committed(PageRef page) const;
  bool InBlock(PageRef page) const;
  bool Drop(PathRef path, BlockCount block, ShardId shard, PageRef page);
  BlockCount Evict(SpaceId space, BlockCount blocks);

  SpaceStats stats(SpaceId space) const;
  void VisitRuns(SpaceId space, uint64_t limit,
                 const std::function<void(const RunInfo&)>& visit) const;
  Bytes memory() const;
  std::string CheckInvariants() const;

 private:
  struct Space {
    SpaceShape shape;
    uint64_t protected_blocks = 0;  // in runs with pins
    uint64_t evicted_blocks = 0;
    uint64_t dropped_blocks = 0;
  };
  // The run that holds a block, and which of its blocks that is.
  struct Place {
    uint32_t run = kNoNode;
    uint32_t block = 0;
  };
  // What a reservation needs, before anything is changed.
  struct Plan {
    SpaceId space;
    uint32_t parent = kNoNode;  // the new blocks go below the first `at` blocks of it
    uint32_t at = 0;
    uint32_t from = 0, to = 0;
    uint64_t pages = 0;
    uint64_t extents = 0;  // to take
  };

  // Paths.
  bool Alive(PathRef path) const;
  Place Locate(PathRef path, uint32_t block) const;
  PathRef PathTo(uint32_t run) const;
  void PinPath(uint32_t run);
  void UnpinPath(uint32_t run);
  void SetProtected(Run* run, bool is_protected);
  void TouchPath(uint32_t run, uint32_t fresh);
  void JoinPath(uint32_t run);
  void UpdateCandidate(uint32_t run);
  uint32_t SplitRun(uint32_t run, uint32_t at);
  RunFacts FactsOf(uint32_t run) const;

  // Reservations.
  uint64_t Evictable(const Plan& plan) const;
  ReserveStatus Fit(Plan* plan) const;
  bool TakeExtents(const Plan& plan);
  void Insert(Tree::Chain chain, uint32_t parent, const Plan& plan);
  bool BlockComplete(const Run& run, uint32_t block) const;

  // Telling.
  PageId FirstPage(const Run& run, uint32_t block) const;
  bool ToldAbove(const Run& run, uint32_t block, uint64_t* above) const;
  BlockKey KeyToTell(uint32_t run, uint32_t block);
  void TellRun(uint32_t run, uint32_t from);
  void TellComplete(uint32_t top, uint32_t from);
  void TellGone(const Run& run, uint32_t from, uint32_t to);

  // Cuts.
  bool IsPage(Place place, ShardId shard, PageId page) const;
  Place FindPage(uint32_t block, ShardId shard, PageId page) const;
  uint64_t DetachBlocks(const Run& run, uint32_t from, uint32_t to);
  void RemoveRun(uint32_t run);
  void CutBelow(uint32_t run);
  void Cut(uint32_t run, uint32_t at);
  void CutUnfinished(uint32_t run);
  void LoadAhead(SpaceId space) const;
  uint64_t EvictTail(uint32_t run, uint64_t blocks_max, uint64_t pages_wanted, uint64_t* pages);

  std::string CheckPages() const;
  std::string CheckTold() const;
  std::string CheckPins() const;
  std::string CheckRunState(uint32_t id) const;

  Tree tree_;
  PageTable pages_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::vector<Space> spaces_;
  Nanos now_ = 0;
  BlockListener* listener_ = nullptr;
  ToldKeys told_;
  struct {
    uint32_t run = kNoNode, generation = 0;
    uint32_t depth = 0;  // blocks above it
    BlockKey key;
  } last_told_;
  // Where Locate was last: blocks of a path are mostly asked for in order.
  mutable struct {
    uint64_t version = 0;
    uint32_t end = kNoNode;
    uint32_t run = kNoNode;
  } near_;
};

}  // namespace pando

#endif  // PANDO_RADIX_CACHE_CACHE_H_
