// Directory: which peers hold which blocks, as they told. A lookup asks nobody.
//
//   chain        k0   k1   k2   k3   k4   k5            Lookup({k0..k5}, 1) =
//   peer 1       x    x    x    x                         {peer 4, depth 5}
//   peer 4       x    x    x    x    x                    {peer 1, depth 4}
//   peer 9       x                                        (peer 9 has nothing below the first)
//
// A block is named by the low half of its chain key (BlockKey::low). The owner compares content
// when it is asked for the pages, so two blocks of one name cost a refused grant, never a wrong
// byte.
//
// The table holds, for each block that anybody has, the key and a word that names the set of its
// holders; equal sets are kept once. A *holder* is one view of a peer: RemovePeer turns the peer's
// view into one that counts no more and is swept out in small steps, and the peer begins anew with
// an empty view at once.
//
//  1. A block counts once a peer, however often it is told (a second Add is redundant and counted
//     as such). So a peer that keeps a block in several tiers says Remove when the last copy goes.
//  2. blocks(peer) and digest(peer) are exactly those of what the peer's view has.
//  3. Work is bounded: an update copies at most two segments of the table (KeyTable), whatever the
//     size, and RemovePeer is O(1).
//  4. Same calls, same answers; `seed` changes no answer.
//
// What Lookup assumes: that a peer's view is closed, no block without the one above it. Advertisers
// keep that, and a digest proves that the view is theirs. Checked for each peer of the answer: it
// has the first block, the one at `from` and the last that is claimed, does not have the next, and
// has every block in between that was looked at. A peer that lies gets asked, and refuses.
//
// Threads: owner thread only.
#ifndef PANDO_NODE_CORE_CLUSTER_DIRECTORY_H_
#define PANDO_NODE_CORE_CLUSTER_DIRECTORY_H_

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node/core/cluster/holder_sets.h"
#include "node/core/cluster/key_table.h"
#include "node/core/cluster/peer_id.h"
#include "radix/base/ids.h"

namespace pando {

// What an update did, in blocks.
struct Applied {
  uint64_t changed = 0;
  uint64_t redundant = 0;  // added though there, removed though not there
  uint64_t refused = 0;    // no memory
};

struct PeerDepth {
  PeerId peer;
  uint32_t depth = 0;  // blocks of the chain, from its first
  friend bool operator==(const PeerDepth&, const PeerDepth&) = default;
};

class Directory {
 public:
  // `seed`: random, so that no peer can choose keys that lie in one place.
  explicit Directory(uint64_t seed);
  ~Directory();

  Applied Add(PeerId peer, std::span<const uint64_t> keys);
  Applied Remove(PeerId peer, std::span<const uint64_t> keys);

  // All that the peer told is forgotten. What it tells from now on is a new view, which is hidden
  // from Lookup until Show if `hidden`.
  void RemovePeer(PeerId peer, bool hidden = false);
  void Show(PeerId peer);
  // Frees what RemovePeer left, at least `places` places of the table further; false: nothing is
  // left. (Twice as many places as there are blocks is about all of the table.)
  bool Sweep(uint64_t places);

  uint64_t blocks(PeerId peer) const;
  // The sum of DigestOf(key) of its blocks (mix.h).
  uint64_t digest(PeerId peer) const;

  // The peers that hold blocks of this chain beyond the first `from`, deepest first, then by peer.
  // `keys` are all from the chain's first.
  void Lookup(std::span<const uint64_t> keys, uint32_t from, std::vector<PeerDepth>* out) const;
  bool Holds(PeerId peer, uint64_t key) const;

  uint64_t unique_blocks() const { return table_.size(); }
  uint64_t holder_blocks() const { return holder_blocks_; }
  Bytes memory() const;
  // Recounts everything. Empty, or what is broken.
  std::string CheckInvariants() const;

 private:
  static constexpr uint32_t kAhead = 16;  // keys whose memory is on its way

  struct Holder {
    PeerId peer;
    bool leaving = false, hidden = false, used = false;
    uint64_t blocks = 0, digest = 0;
  };
  // A block of the chain that is looked at.
  struct Probe {
    uint32_t at = 0;
    HolderSet set = kNoHolder;
  };

  uint32_t HolderOf(PeerId peer);
  const Holder* Find(PeerId peer) const;
  template <class One>
  Applied ForEach(std::span<const uint64_t> keys, const One& one);
  // The places looked at; nothing: a part is left that needs memory.
  std::optional<uint32_t> SweepSegment(uint32_t gone);
  void Place(std::span<const uint64_t> keys, uint32_t from) const;
  bool Refine() const;
  void Read(std::span<const uint64_t> keys) const;
  void Collect(uint32_t from, std::vector<PeerDepth>* out) const;
  bool Counts(uint32_t holder) const {
    return !holders_[holder].leaving && !holders_[holder].hidden;
  }

  KeyTable table_;
  HolderSets sets_;
  std::vector<Holder> holders_;
  std::vector<uint32_t> free_holders_;
  absl::flat_hash_map<PeerId, uint32_t> holder_of_;
  std::deque<uint32_t> leaving_;
  uint32_t sweep_at_ = 0;  // segment of the table
  uint64_t holder_blocks_ = 0;

  // Lookup's own, kept for their memory.
  struct Scratch {
    std::vector<Probe> probes, finer;
    std::vector<uint32_t> alive, still;
  };
  mutable Scratch scratch_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_DIRECTORY_H_
