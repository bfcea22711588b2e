// A piece of what a node tells its peers, as plain values (proto/pando/v1/peer.proto says the same
// in bytes). Immutable.
//
//   part      0    0    1    2    0    3,last  0        0 is a delta; deltas go on between the
//   sequence  7    8    8    8    9    9       10       parts of a snapshot
//
// A delta has the sequence after the last one, a part that of the last delta before it. Part 1
// empties the view. Removes are applied before adds.
#ifndef PANDO_NODE_CORE_CLUSTER_FEED_H_
#define PANDO_NODE_CORE_CLUSTER_FEED_H_

#include <cstdint>
#include <vector>

#include "node/core/cluster/mix.h"
#include "radix/base/ids.h"

namespace pando {

// A set of keys, as two nodes compare it.
struct KeySum {
  uint64_t digest = 0;  // the sum of DigestOf(key)
  uint64_t keys = 0;

  void Add(uint64_t key) {
    digest += DigestOf(key);
    ++keys;
  }
  void Remove(uint64_t key) {
    digest -= DigestOf(key);
    --keys;
  }
  friend bool operator==(const KeySum&, const KeySum&) = default;
};

struct FeedPiece {
  BootId boot;
  uint64_t sequence = 0;
  uint32_t part = 0;
  bool last = false;
  std::vector<uint64_t> removes, adds;                  // blocks that can be asked for
  std::vector<uint64_t> prefill_removes, prefill_adds;  // blocks that are being computed
  // Of the view after this piece: of a delta, or of the last part.
  KeySum held, prefilling;

  uint64_t keys() const {
    return removes.size() + adds.size() + prefill_removes.size() + prefill_adds.size();
  }
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_FEED_H_
