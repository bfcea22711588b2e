// PrefixCache: which KV pages this node has, for which prompts, and what goes when room is needed.
//
//   tokens    [ system prompt ][ document      ][ question  ]      block_tokens tokens are one
//   block scopes      public           corpus/manual    tenant/a         segments, wider to
//   narrower tree      root ── run (public) ── run (corpus/manual) ─┬─ run (tenant/a)
//                                                          └─ run (tenant/b)
//   a block   = block_tokens tokens + extra bytes, in one scope; one page per tier and shard
//
// A request's life, as node/core drives it:
//
//   Find ──► Pin ──► Hold / Release (a shard copies pages out) ──► Unpin                     load
//   Reserve ──► Hold ──► Commit, shard by shard ──► Release ──► Finish                      store
//
// Invariants (CheckInvariants tests them all):
//  1. A block is visible (found by Find) only if it and all its ancestors are complete: the pages
//     of all shards committed.
//  2. Two blocks are the same only if tokens, extra bytes and scope path of the whole chain above
//     are equal. Hashes only choose what is compared.
//  3. Only tails of leaves that nobody pins are evicted; whatever is resident is reachable.
//  4. Every page of an extent is in exactly one state; the states sum to all pages
//     (pages/page_table.h).
//  5. A {page, generation} or {run, generation} is never used twice.
//  6. An operation happens whole or leaves everything as it was; when memory for the index itself
//     cannot be had it says so (kNoMemory) and has changed nothing.
//
// Sizes: block_tokens >= 1; 1 B <= page_bytes <= 8 MiB; 1 <= shards <= 64.
// Threads: owner thread only. No clock: the caller says what time it is (set_now).
#ifndef PANDO_RADIX_PREFIX_CACHE_H_
#define PANDO_RADIX_PREFIX_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "radix/base/ids.h"
#include "radix/base/page_ops.h"
#include "radix/key/prompt.h"

namespace pando {

// One geometry of KV that can be shared at all.
struct SpaceShape {
  std::string identity;  // canonical bytes of all that tells spaces apart; goes into every key
  uint32_t block_tokens = 0;
  Bytes page_bytes;
  uint32_t shards = 0;
};

// The chain of `blocks` blocks that ends with the last block of run {run, generation} (or, after
// that run was cut by Drop, ended there). A split leaves the name with the lower part, so a PathRef
// stays true while the chain is pinned. blocks == 0 is the root: nothing is pinned.
struct PathRef {
  RunId run;
  Generation generation;
  BlockCount blocks;
};

// What Find found: the first `blocks` blocks are visible. Valid until the next mutation.
struct Match {
  SpaceId space;
  BlockCount blocks;
  RunId run;              // the run that holds the last matched block
  BlockCount run_blocks;  // how many of that run's leading blocks matched
  Stop stop = Stop::kEnd;
  uint64_t writer = 0;  // with Stop::kInFlight: who writes the next block (Reserve's `writer`)
  uint32_t runs_visited = 0;
};

struct PageView {
  PageRef page;
  uint64_t checksum = 0;  // of a committed page; 0 for one being written
};

enum class ReserveStatus : uint8_t {
  kOk,
  kNothing,   // all of [.., to) is there already
  kInFlight,  // the first missing block is being written by another writer
  kFull,      // no free page, nothing to evict, no extent to take
  kNoMemory,  // the index itself cannot grow
};

struct Reservation {
  ReserveStatus status = ReserveStatus::kNothing;
  PathRef path;         // ends with block to-1
  BlockCount from, to;  // blocks that got pages, for all shards
};

// Disjoint; they sum to all pages of the extents that the spaces own.
struct PageCounts {
  uint64_t free = 0, reserved = 0, receiving = 0, committed = 0, held = 0, quarantined = 0;
};

struct SpaceStats {
  PageCounts pages;
  uint64_t extents = 0;
  uint64_t runs = 0;
  uint64_t blocks = 0;          // in the tree, visible or being written
  uint64_t evicted_blocks = 0;  // since start
  uint64_t dropped_blocks = 0;  // since start
};

// One run as `pandoctl tree` shows it. No tokens.
struct RunInfo {
  RunId run;
  RunId parent;  // == run for a child of the root
  uint32_t depth_blocks = 0, blocks = 0, complete_blocks = 0, children = 0, pins = 0;
  std::string scope;
  // The name under which the listener was told of its last complete block, if it was.
  std::optional<uint64_t> told_key;
};

// Told which blocks can be found and which no longer, under the low halves of their keys.
class BlockListener {
 public:
  virtual ~BlockListener() = default;
  // `keys` follow each other down from `above`, which has been told, or from a root.
  virtual void Appeared(std::optional<uint64_t> above, std::span<const uint64_t> keys) = 0;
  // From the leaves up.
  virtual void Vanished(std::span<const uint64_t> keys) = 0;
};

class PrefixCache {
 public:
  struct Options {
    std::string key_secret;    // the cluster's; any bytes, empty for the built-in default
    double space_share = 0.8;  // of all extents, what one space may own (at least one extent)
    bool collide = false;      // tests only: every key hashes to the same value (FAULTS A8)
    uint32_t extent_pages_max =
        0;  // tests only: carve at most so many pages from an extent; 0: all
    PageOpCounts* page_ops = nullptr;  // tests only: counts there; must outlive the cache
  };

  explicit PrefixCache(const Options& options);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // Before there is any block; null: nobody. The listener outlives the cache, must not call it, and
  // is told in the order in which things happen. What there is no memory to tell is not told.
  void SetListener(BlockListener* listener);

  // The time of what follows. Never goes back.
  void set_now(Nanos now);

  // Adds a space; nullopt when the index cannot grow. The caller keeps identities unique.
  std::optional<SpaceId> AddSpace(const SpaceShape& shape);
  const SpaceShape& shape(SpaceId space) const;

  // An empty, populated extent joins the pool of extents that no space owns yet.
  bool AddExtent(ExtentId extent);
  // Gives the space's extents that have no page in use back to the pool; returns how many.
  uint64_t ReleaseEmptyExtents(SpaceId space);
  uint64_t extents_unowned() const;

  // The longest visible prefix of `prompt`, at most `limit` blocks. Changes nothing.
  // O(tokens compared) + O(1) for each run visited.
  Match Find(SpaceId space, const Prompt& prompt, BlockCount limit) const;

  // Appends the names by which other nodes and waiters know the prompt's blocks from the match's
  // end up to `to`: the low halves of their chain keys (radix/key/block_key.h).
  void AppendKeys(const Match& match, const Prompt& prompt, BlockCount to,
                  std::vector<uint64_t>* lows) const;

  // The name under which the listener was told of the match's last block, if it was.
  std::optional<uint64_t> ToldKey(const Match& match) const;

  // Pins a match and marks its chain as used (tail first, so that the root is the most recent).
  // Until Unpin none of its blocks is evicted. Pins add up. nullopt: no memory, nothing was
  // changed.
  std::optional<PathRef> Pin(const Match& match);
  void Unpin(PathRef path);

  // Gives pages to the blocks of `prompt` below `to` that are not in the tree yet, for all shards,
  // all or nothing, evicting as many tails as that needs and no more. Starts at the first missing
  // block, which may lie before `from`; blocks that `writer` itself is writing count as there. The
  // path above and the new blocks are pinned until Finish. `to` is capped to the prompt's full
  // blocks, and to the first `most` missing ones.
  Reservation Reserve(SpaceId space, const Prompt& prompt, BlockCount to, uint64_t writer,
                      BlockCount most = BlockCount(UINT32_MAX));
  // Ends a reservation: blocks that are complete stay, the others are dropped (their pages are free
  // at once, or quarantined while held). Commit has no effect on them any more.
  void Finish(const Reservation& reservation);

  // Starts a copy by `shard` on the blocks [from, to) of `path`: appends their pages to `pages` and
  // adds a hold to each. All or nothing: false, and nothing changed, if one of them is no longer
  // there.
  bool Hold(PathRef path, BlockCount from, BlockCount to, ShardId shard,
            std::vector<PageView>* pages);
  // Ends one hold on each page. A quarantined page whose last hold ends is free.
  void Release(std::span<const PageView> pages);

  // Publishes one page of a reservation, with the checksum of its bytes: {block, shard} had been
  // given `page`. The hold stays until Release. False if that page is no longer reserved for that
  // block.
  bool Commit(PathRef path, BlockCount block, ShardId shard, PageRef page, uint64_t checksum);
  // The same for many: pages[i] with checksums[i] is the page of block from + i. Ends with the
  // first that it cannot publish; returns how many it did.
  BlockCount Commit(PathRef path, BlockCount from, ShardId shard, std::span<const PageView> pages,
                    std::span<const uint64_t> checksums);
  // How many pages of a reservation are still to be committed: 0 when its path has gone. Every page
  // that is reserved or receiving is one of exactly one reservation that was not finished.
  uint64_t PagesToWrite(const Reservation& reservation) const;

  // Cuts block `block` of `path` out, with all below it; also when the end of the path has been cut
  // away before. False if `page`, which the caller holds, is no longer that of the block's `shard`.
  bool Drop(PathRef path, BlockCount block, ShardId shard, PageRef page);

  // Whether a page that the caller holds has been published.
  bool Committed(PageRef page) const;
  // Whether a page that the caller holds is still some block's: false after a drop.
  bool InBlock(PageRef page) const;

  // Evicts up to `blocks` blocks from the space; returns how many went.
  BlockCount Evict(SpaceId space, BlockCount blocks);

  SpaceStats stats(SpaceId space) const;
  uint32_t spaces() const;
  // Calls `visit` for up to `limit` runs of the space, parents before children.
  void VisitRuns(SpaceId space, uint64_t limit,
                 const std::function<void(const RunInfo&)>& visit) const;
  // Bytes of heap that the index uses: tree, tokens, page table, policy.
  Bytes memory() const;
  // Recounts everything. Empty, or the first broken invariant.
  std::string CheckInvariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando

#endif  // PANDO_RADIX_PREFIX_CACHE_H_
