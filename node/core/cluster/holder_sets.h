// Sets of holders, each distinct set once, named by one word.
//
//   {}       kNoHolder            7 ──With 9──► {7,9} ──Without 7──► 9
//   {7}      7                    a step from set to set is remembered, so that the next block that
//   {7,9}    kMany | 0, interned  takes the same step costs a look into a small table
//
//  1. A word other than a single holder's counts its references; the set goes with the last.
//  2. Equal sets have equal words.
//  3. Members are in ascending order.
//
// With and Without take the reference of the word they are given and give one of the word they
// return. Throws std::bad_alloc. Threads: owner thread only.
#ifndef PANDO_NODE_CORE_CLUSTER_HOLDER_SETS_H_
#define PANDO_NODE_CORE_CLUSTER_HOLDER_SETS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "radix/pool/chunked_array.h"
#include "radix/pool/linear_index.h"
#include "radix/pool/word_pool.h"

namespace pando {

using HolderSet = uint32_t;
inline constexpr HolderSet kNoHolder = 0xffffffff;

class HolderSets {
 public:
  static constexpr uint32_t kHoldersMax = 1u << 30;  // ids are below

  HolderSets();
  ~HolderSets();
  HolderSets(const HolderSets&) = delete;
  HolderSets& operator=(const HolderSets&) = delete;

  // The set itself if it has that holder already.
  HolderSet With(HolderSet set, uint32_t holder) {
    if (set == kNoHolder) return holder;
    return Step(set, holder, false);
  }
  // The set itself if it has not.
  HolderSet Without(HolderSet set, uint32_t holder) {
    if (set == holder) return kNoHolder;
    if (!IsMany(set)) return set;
    return Step(set, holder, true);
  }
  // `word` must outlive what is returned, which is valid until the next With or Without.
  std::span<const uint32_t> Members(const HolderSet& word) const {
    if (word == kNoHolder) return {};
    if (!IsMany(word)) return {&word, 1};
    const Record& record = records_[word & ~kMany];
    return {record.members, record.size};
  }
  bool Contains(HolderSet set, uint32_t holder) const;

  uint64_t size() const { return index_.size(); }  // sets of two or more
  uint64_t bytes() const;
  // References of a set of two or more; all of them are below `ids()`.
  uint32_t ids() const { return used_; }
  uint32_t refs(uint32_t id) const { return records_[id].refs; }
  static bool IsMany(HolderSet set) { return (set & kMany) != 0 && set != kNoHolder; }
  static uint32_t IdOf(HolderSet set) { return set & ~kMany; }
  // Empty, or what is broken.
  std::string CheckInvariants() const;

 private:
  static constexpr uint32_t kMany = 1u << 31;
  static constexpr uint32_t kRemembered = 1024;

  struct Record {
    uint64_t hash = 0;  // the sum of the members' hashes
    uint32_t* members = nullptr;
    uint32_t size = 0;
    uint32_t refs = 0;
    uint32_t lives = 0;  // of this id: what was remembered of an earlier one does not count
    uint32_t next = kNoNode;
  };
  using Records = ChunkedArray<Record, 8>;
  struct Access {
    Records* records;
    uint32_t& next(uint32_t id) const { return (*records)[id].next; }
    uint64_t hash(uint32_t id) const { return (*records)[id].hash; }
  };
  struct Remembered {
    HolderSet from = kNoHolder, to = kNoHolder;
    uint32_t step = 0;  // holder << 1 | removed
    uint32_t from_lives = 0, to_lives = 0;
  };

  uint32_t LivesOf(HolderSet set) const { return IsMany(set) ? records_[set & ~kMany].lives : 0; }
  HolderSet Step(HolderSet set, uint32_t holder, bool remove) {
    const uint32_t step = holder << 1 | (remove ? 1 : 0);
    const Remembered& seen = remembered_[(set * 0x9e3779b1u ^ step * 0x85ebca6bu) >> 22];
    if (seen.from == set && seen.step == step && seen.from_lives == LivesOf(set) &&
        seen.to_lives == LivesOf(seen.to)) {
      Move(set, seen.to);
      return seen.to;
    }
    return StepAnew(set, holder, remove);
  }
  void Move(HolderSet from, HolderSet to) {
    if (from == to) return;
    if (IsMany(to)) ++records_[to & ~kMany].refs;
    if (IsMany(from) && --records_[from & ~kMany].refs == 0) Forget(from & ~kMany);
  }
  HolderSet StepAnew(HolderSet set, uint32_t holder, bool remove);
  HolderSet Intern(std::span<const uint32_t> members, uint64_t hash);
  void Forget(uint32_t id);

  Records records_;
  LinearIndex<Access> index_;
  WordPool words_;
  uint32_t used_ = 0;
  uint32_t free_ = kNoNode;
  std::unique_ptr<Remembered[]> remembered_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_HOLDER_SETS_H_
