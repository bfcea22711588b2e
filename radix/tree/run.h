// Run: an edge of the tree, a sequence of blocks that lie below each other in one scope.
//
//   columns   [ tokens: capacity x block_tokens ][ pages: capacity x shards ][ extras: capacity ]
//
// One allocation of 32-bit words a run; tokens lie contiguously, so that a match is a memcmp. The
// column of extras (interned ids) is there only if some block has extra bytes.
// Plain data; only Tree changes it. Threads: owner thread only.
#ifndef PANDO_RADIX_TREE_RUN_H_
#define PANDO_RADIX_TREE_RUN_H_

#include <cstdint>

#include "radix/base/ids.h"
#include "radix/key/block_key.h"
#include "radix/pool/linear_index.h"

namespace pando {

// A longer chain is several runs, so that every step over a run is bounded.
inline constexpr uint32_t kRunBlocksMax = 512;

struct BlockShape {
  uint32_t tokens = 0;  // a block
  uint32_t shards = 0;

  uint64_t Words(uint32_t capacity, bool extras) const {
    return uint64_t{capacity} * (tokens + shards + (extras ? 1 : 0));
  }
};

// A run's neighbours among its parent's children. Apart from the run: to take a run out is to write
// to both neighbours, which lie anywhere, and eight bytes a run stay in the processor's cache.
struct Siblings {
  uint32_t previous = kNoNode, next = kNoNode;
};

struct alignas(64) Run {
  // What a match reads.
  BlockKey first_key;         // of its first block
  uint32_t* words = nullptr;  // the columns
  uint32_t parent = kNoNode;
  uint32_t index_next = kNoNode;  // in its bucket, or of the free runs
  uint32_t scope = kNoNode;       // interned path
  uint32_t blocks = 0;
  uint32_t complete = 0;  // leading blocks whose pages are all committed
  uint32_t capacity = 0;
  uint32_t children = 0;
  uint8_t space = 0;
  bool live = false;
  bool has_extras = false;
  bool has_end_key = false;
  uint32_t depth = 0;  // blocks above

  // The rest.
  BlockKey end_key;     // of its last block; kept while it has children
  uint64_t writer = 0;  // who fills its incomplete blocks
  // The end of the path that was reserved with its incomplete blocks: while it is there, they can
  // be completed.
  uint32_t filler = kNoNode, filler_generation = 0;
  uint32_t first_child = kNoNode;
  uint32_t generation = 1;
  uint32_t pins = 0;      // paths that end in it or below it
  uint32_t pins_own = 0;  // paths that end in it

  bool is_root() const { return parent == kNoNode; }
  bool is_complete() const { return complete == blocks; }
  uint32_t end() const { return depth + blocks; }

  uint32_t* tokens(BlockShape shape, uint32_t block) const {
    return words + uint64_t{block} * shape.tokens;
  }
  uint32_t* pages(BlockShape shape, uint32_t block) const {
    return words + uint64_t{capacity} * shape.tokens + uint64_t{block} * shape.shards;
  }
  uint32_t* extras(BlockShape shape, uint32_t block) const {
    return words + uint64_t{capacity} * (shape.tokens + shape.shards) + block;
  }
};
static_assert(sizeof(Run) == 128);

}  // namespace pando

#endif  // PANDO_RADIX_TREE_RUN_H_
