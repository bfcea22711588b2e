// Advertiser: what this node tells its peers of its blocks.
//
//   Appeared, Vanished, Used ──► blocks (a forest) ──Flush──► deltas ──Take──► each subscriber
//                                     │ chosen: hot, closed          ▲ shared, bounded
//                                     └─── parts of a snapshot ──────┘
//
//  1. What is told is closed: a block is told only if the one above it is. FAULTS E3
//  2. At most `budget` bytes are told, eight a block. When there is more, hot blocks are: a block
//     takes another's place only if it is twice as hot, so that nothing goes to and fro.
//  3. A block is told once, in however many tiers it is, and gone with the last of them. FAULTS E2
//  4. What came and went between two flushes costs nothing. Removes go from the leaves up, adds
//     from the root down.
//  5. Deltas are made once for all subscribers and the newest `backlog` bytes of them kept. A
//     subscriber that is further behind gets a snapshot instead. It is read off the blocks part by
//     part while deltas go on, so that a subscriber costs a few words, however slow. FAULTS E5
//  6. Same calls, same pieces: no clock, no chance, no order of a hash map.
//
// What is being prefilled is told outside of the budget. Heat is a logarithm: each use adds one to
// a count that halves with every `half_life`, kept as (time / half_life + log2(count)) in
// sixteenths, so that nothing has to be aged.
//
// Threads: owner thread only.
#ifndef PANDO_NODE_CORE_CLUSTER_ADVERTISER_H_
#define PANDO_NODE_CORE_CLUSTER_ADVERTISER_H_

#include <absl/container/btree_map.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/core/cluster/feed.h"
#include "node/core/cluster/heat_lists.h"
#include "radix/base/ids.h"
#include "radix/pool/chunked_array.h"
#include "radix/pool/linear_index.h"

namespace pando {

using SubscriberId = Id<struct SubscriberIdTag, uint64_t>;

// Where a copy of a block is; bits of a mask.
enum class Tier : uint8_t { kDevice = 1, kHost = 2, kDisk = 4 };

class Advertiser {
 public:
  struct Options {
    BootId boot;
    Bytes budget{8ull << 20};
    Bytes backlog{4ull << 20};
    uint32_t keys_per_piece = 65'536;
    uint32_t moves_per_flush = 65'536;   // changes of mind about what is told
    Nanos half_life = 600'000'000'000;   // of heat
    Nanos digest_every = 7'000'000'000;  // an empty delta at the latest
  };
  struct Counters {
    uint64_t blocks = 0, told = 0;  // now
    uint64_t adds = 0, removes = 0, deltas = 0, parts = 0, snapshots = 0;
    uint64_t fell_behind = 0;  // subscribers that got a snapshot instead of a backlog
    uint64_t without_parent = 0, unknown = 0;  // blocks of calls that say nothing that can be
  };

  explicit Advertiser(const Options& options);
  ~Advertiser();

  // `keys` follow each other down from `parent`, a block that is known, or from a root. Blocks that
  // are known already get the tier.
  void Appeared(std::optional<uint64_t> parent, std::span<const uint64_t> keys, Tier tier,
                Nanos now);
  // In this tier. What was below a block that is in no tier any more is forgotten with it.
  void Vanished(std::span<const uint64_t> keys, Tier tier);
  // A request used these.
  void Used(std::span<const uint64_t> keys, Nanos now);
  // Each Began is undone by one Ended.
  void PrefillBegan(std::span<const uint64_t> keys);
  void PrefillEnded(std::span<const uint64_t> keys);

  // Decides what is told from now on and makes the deltas; one at least, empty, if `even_empty`.
  void Flush(Nanos now, bool even_empty = false);

  SubscriberId Subscribe();
  // That has everything up to this sequence of this boot already.
  SubscriberId Subscribe(BootId boot, uint64_t sequence);
  void Unsubscribe(SubscriberId id);
  // The next piece for this one; null: it has all.
  std::shared_ptr<const FeedPiece> Take(SubscriberId id);

  uint64_t sequence() const { return sequence_; }
  KeySum told() const { return told_; }
  bool Tells(uint64_t key) const;
  Counters counters() const;
  Bytes memory() const;
  std::string CheckInvariants() const;

 private:
  // Blocks are nodes of a forest; children of a block, and the roots, are lists by sibling.
  struct Block {
    uint64_t key = 0;
    uint32_t parent = kNoNode, child = kNoNode, older = kNoNode, younger = kNoNode;
    uint32_t in_bucket = kNoNode;
    uint32_t chosen_children = 0;
    HeatLink link;
    uint8_t tiers = 0;     // 0: gone, or free
    bool chosen = false;   // to be told
    bool told = false;     // as the last flush left it
    bool changed = false;  // is in changed_
  };
  using Blocks = ChunkedArray<Block, 10>;
  struct Access {
    Blocks* blocks;
    uint32_t& next(uint32_t id) const { return (*blocks)[id].in_bucket; }
    uint64_t hash(uint32_t id) const { return (*blocks)[id].key; }
  };
  struct LinkOf {
    Blocks* blocks;
    HeatLink& operator()(uint32_t id) const { return (*blocks)[id].link; }
  };
  struct Prefill {
    uint32_t count = 0;
    bool told = false;
  };
  struct Subscriber {
    uint64_t sequence = 0;  // of the last delta it took
    bool snapshot = true;   // it needs one, or is in the middle of one
    uint32_t part = 0;      // the last it took
    uint32_t at = 0;        // the block that the next part begins with
  };

  uint32_t Find(uint64_t key) const;
  uint32_t Make(uint64_t key);
  void Link(uint32_t id, uint32_t parent);
  void Unlink(uint32_t id);
  void Forget(uint32_t id);
  void SetHeat(uint32_t id, uint32_t heat);
  void WarmPath(uint32_t id, uint32_t time);

  void Relist(uint32_t id);
  void Choose(uint32_t id);
  void Unchoose(uint32_t id);
  void Mark(uint32_t id);
  void Rebalance();
  void TellBlocks(std::shared_ptr<FeedPiece>* piece);
  void TellPrefills(std::shared_ptr<FeedPiece>* piece);
  void FreeGone();
  FeedPiece* Room(std::shared_ptr<FeedPiece>* piece);
  void Seal(std::shared_ptr<FeedPiece>* piece);
  std::shared_ptr<const FeedPiece> NextPart(Subscriber* subscriber);
  uint32_t TimeOf(Nanos now) const;

  const Options options_;
  const uint64_t budget_blocks_;
  Blocks blocks_;
  LinearIndex<Access> index_;
  uint32_t used_ = 0, free_ = kNoNode;
  uint32_t first_root_ = kNoNode;
  uint64_t present_ = 0, chosen_ = 0;
  HeatLists<LinkOf> candidates_;  // not chosen, and the one above is
  HeatLists<LinkOf> leaves_;      // chosen, and none below is
  std::vector<uint32_t> changed_;

  absl::btree_map<uint64_t, Prefill> prefills_;
  std::vector<uint64_t> prefills_changed_;

  KeySum told_, prefilling_;
  uint64_t sequence_ = 0;
  Nanos last_delta_ = 0;
  bool never_flushed_ = true;
  std::deque<std::shared_ptr<const FeedPiece>> backlog_;
  uint64_t backlog_bytes_ = 0;
  absl::btree_map<uint64_t, Subscriber> subscribers_;
  uint64_t next_subscriber_ = 1;
  Counters counters_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_ADVERTISER_H_
