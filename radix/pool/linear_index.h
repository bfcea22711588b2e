// A hash index over nodes that live elsewhere, by linear hashing: it grows bucket by bucket, so
// that no insertion ever waits for a rehash, and an insertion cannot fail.
//
//   buckets  0 1 2 3 | 4 5          n = 6 buckets: those with hash & 7 >= 6 are still in hash & 3
//            │ │                    growing by one splits bucket n - 4 = 2 into 2 and 6
//            ▼ ▼
//            node ─► node           chained through a field of the node
//
// `Access` says how to reach a node's chain field and its hash:
//   uint32_t& next(uint32_t node) const;   uint64_t hash(uint32_t node) const;
//
// When memory for more buckets cannot be had the chains grow longer instead. Equal hashes are
// normal: the caller's predicate decides. Threads: owner thread only.
#ifndef PANDO_RADIX_POOL_LINEAR_INDEX_H_
#define PANDO_RADIX_POOL_LINEAR_INDEX_H_

#include <bit>
#include <cstdint>
#include <new>

#include "radix/base/check.h"
#include "radix/pool/chunked_array.h"

namespace pando {

inline constexpr uint32_t kNoNode = 0xffffffff;

template <class Access>
class LinearIndex {
 public:
  // Throws std::bad_alloc if not even the first buckets can be had.
  explicit LinearIndex(Access access) : access_(access) {
    if (!buckets_.EnsureSize(kFirstBuckets)) throw std::bad_alloc();
    for (uint32_t i = 0; i < kFirstBuckets; ++i) buckets_[i] = kNoNode;
  }

  // The first node with this hash for which `equal(node)` holds, or kNoNode.
  template <class Equal>
  uint32_t Find(uint64_t hash, const Equal& equal) const {
    uint32_t node = buckets_[BucketOf(hash)];
    while (node != kNoNode && !(access_.hash(node) == hash && equal(node))) {
      node = access_.next(node);
    }
    return node;
  }

  void Insert(uint32_t node) {
    Grow();
    uint32_t& bucket = buckets_[BucketOf(access_.hash(node))];
    access_.next(node) = bucket;
    bucket = node;
    ++size_;
  }

  void Remove(uint32_t node) {
    uint32_t* link = LinkTo(node);
    *link = access_.next(node);
    --size_;
  }

  // `by` takes the place of `node`, which has the same hash.
  void Replace(uint32_t node, uint32_t by) {
    uint32_t* link = LinkTo(node);
    access_.next(by) = access_.next(node);
    *link = by;
  }

  // Starts to load what Find of this hash will read first. Inlined always: g++ 12 takes a function
  // that only prefetches for one without effect, and drops its calls.
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const {
    __builtin_prefetch(&buckets_[BucketOf(hash)]);
  }

  // And then the first node.
  [[gnu::always_inline]] void PrefetchFirst(uint64_t hash) const {
    const uint32_t node = buckets_[BucketOf(hash)];
    if (node != kNoNode) __builtin_prefetch(&access_.next(node));
  }

  uint64_t size() const { return size_; }
  uint64_t bytes() const { return buckets_.bytes(); }

 private:
  static constexpr uint32_t kFirstBuckets = 1024;
  // Buckets a node: short chains are worth 4 bytes a run, they save a cache miss each.
  static constexpr uint64_t kBucketsPerNode = 2;
  static constexpr uint32_t kBucketsMax = 1u << 31;

  uint32_t BucketOf(uint64_t hash) const {
    const auto bucket = static_cast<uint32_t>(hash) & mask_;
    return bucket < count_ ? bucket : bucket & (mask_ >> 1);
  }

  uint32_t* LinkTo(uint32_t node) {
    uint32_t* link = &buckets_[BucketOf(access_.hash(node))];
    while (*link != node) {
      PANDO_CHECK(*link != kNoNode) << "node " << node << " is not in the index";
      link = &access_.next(*link);
    }
    return link;
  }

  void Grow() {
    for (int step = 0; step < 2 * static_cast<int>(kBucketsPerNode); ++step) {
      if (count_ >= (size_ + 1) * kBucketsPerNode || count_ == kBucketsMax) return;
      if (!buckets_.EnsureSize(uint64_t{count_} + 1)) return;
      SplitOne();
    }
  }

  // Adds bucket `count_` and moves to it what belongs there, in order.
  void SplitOne() {
    const uint32_t added = count_++;
    mask_ = std::bit_ceil(count_) - 1;
    uint32_t* keep = &buckets_[added & (mask_ >> 1)];
    uint32_t* move = &buckets_[added];
    for (uint32_t node = *keep; node != kNoNode;) {
      uint32_t& next = access_.next(node);
      uint32_t*& end = (static_cast<uint32_t>(access_.hash(node)) & mask_) == added ? move : keep;
      *end = node;
      end = &next;
      node = next;
    }
    *keep = kNoNode;
    *move = kNoNode;
  }

  Access access_;
  ChunkedArray<uint32_t, 12> buckets_;
  uint32_t count_ = kFirstBuckets;
  uint32_t mask_ = kFirstBuckets - 1;
  uint64_t size_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_POOL_LINEAR_INDEX_H_
