// The ids and counts of the whole program (the words are ARCHITECTURE.md's glossary). Immutable.
#ifndef PANDO_RADIX_BASE_IDS_H_
#define PANDO_RADIX_BASE_IDS_H_

#include <cstdint>

#include "radix/base/strong.h"

namespace pando {

// One geometry of KV on this node; dense, from 0, in order of first attach.
using SpaceId = Id<struct SpaceIdTag, uint32_t>;
// An edge of the radix tree; an index that is used again once the run has gone (see RunRef).
using RunId = Id<struct RunIdTag, uint32_t>;
// A 64 MiB piece of a slab; dense, from 0.
using ExtentId = Id<struct ExtentIdTag, uint32_t>;
// The memory of one block's KV of one shard: extent << 14 | index in the extent.
using PageId = Id<struct PageIdTag, uint32_t>;
// Counts the lives of a page or a run. A pair {id, generation} is never used twice.
using Generation = Id<struct GenerationTag, uint32_t>;
// A tensor-parallel rank's part of a block, from 0.
using ShardId = Id<struct ShardIdTag, uint32_t>;
// A connection of one engine process to the node; never used twice in a node's life.
using SessionId = Id<struct SessionIdTag, uint64_t>;
// A lease or a reservation; never used twice in a node's life, 0 is none.
using ClaimId = Id<struct ClaimIdTag, uint64_t>;
// An engine's name for a request: unique in its replica while the request is open.
using RequestId = Id<struct RequestIdTag, uint64_t>;
// Names one life of one node process; random, never 0.
using BootId = Id<struct BootIdTag, uint64_t>;

using TokenCount = Count<struct TokenCountTag, uint64_t>;
using BlockCount = Count<struct BlockCountTag, uint32_t>;
using PageCount = Count<struct PageCountTag, uint64_t>;
using Bytes = Count<struct BytesTag, uint64_t>;

// Nanoseconds of CLOCK_MONOTONIC. The core gets it as an input and never reads a clock.
using Nanos = int64_t;

inline constexpr uint32_t kPageIndexBits = 14;
inline constexpr Bytes kExtentBytes{64ull << 20};
// A page starts at a multiple of this in its extent, however small its payload.
inline constexpr Bytes kPageStrideMin{4096};
static_assert(kExtentBytes.value() / kPageStrideMin.value() == 1u << kPageIndexBits);

constexpr ExtentId ExtentOf(PageId page) {
  return ExtentId(page.value() >> kPageIndexBits);
}
constexpr uint32_t IndexInExtent(PageId page) {
  return page.value() & ((1u << kPageIndexBits) - 1);
}
constexpr PageId MakePageId(ExtentId extent, uint32_t index) {
  return PageId(extent.value() << kPageIndexBits | index);
}
// Distance in bytes between the starts of two pages of `page_bytes` each.
constexpr Bytes PageStride(Bytes page_bytes) {
  const uint64_t m = kPageStrideMin.value();
  return Bytes((page_bytes.value() + m - 1) / m * m);
}

// {page, generation}: names one life of one page.
struct PageRef {
  PageId page;
  Generation generation;
  friend constexpr bool operator==(const PageRef&, const PageRef&) = default;
};
inline constexpr PageRef kNoPage{PageId(0xffffffff), Generation(0)};

}  // namespace pando

#endif  // PANDO_RADIX_BASE_IDS_H_
