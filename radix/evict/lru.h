// LRU, tail first: the run whose last use is longest ago, and of it the last block.
//
//   oldest ─► leaf ─► leaf ─► parent ─► leaf ─► parent ─► root's child   newest
//
// All runs of a space are in one list in order of last use. A parent is used no earlier than its
// children, so the oldest run is nearly always an evictable leaf. If it is not (somebody pins it,
// or a run below it), it is parked: taken out of the list until it is used again or becomes a
// candidate; then it is older than all that stayed, and goes back to the old end, behind those that
// came back before it and are older still. A run is parked at most once for each time it was used,
// so Victim is O(1) amortised, however long pins are held; the end of a pin is a use, so only a run
// whose pinned child was dropped ever goes back.
//
// Runs are split where a use ends, so this equals LRU over single blocks, to the block.
#ifndef PANDO_RADIX_EVICT_LRU_H_
#define PANDO_RADIX_EVICT_LRU_H_

#include <cstdint>
#include <vector>

#include "radix/evict/policy.h"
#include "radix/pool/chunked_array.h"

namespace pando {

class LruPolicy final : public EvictionPolicy {
 public:
  bool MakeRoom(uint64_t ids) override { return nodes_.EnsureSize(ids); }
  bool EnsureSpace(SpaceId space) override;

  void Insert(const RunFacts& run, const UseFacts& use) override;
  void Touch(const RunFacts& run, const UseFacts& use) override;
  void Split(const RunFacts& upper, const RunFacts& lower) override;
  void Merge(const RunFacts& upper, const RunFacts& lower) override;
  void Cut(const RunFacts& run) override;
  void Remove(const RunFacts& run) override;
  void SetCandidate(RunId run, bool candidate) override;

  std::optional<RunId> Victim(SpaceId space) override;
  size_t Upcoming(SpaceId space, std::span<RunId> runs) const override;

  bool IsCandidate(RunId run) const override { return nodes_[run.value()].candidate; }
  Bytes memory() const override;
  std::string Check() const override;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Node {
    uint64_t used = 0;  // counts uses; of two runs, the smaller was used earlier
    uint32_t older = kNone, newer = kNone;
    uint32_t space : 29 = 0;
    uint32_t known : 1 = 0;
    uint32_t listed : 1 = 0;  // else parked
    uint32_t candidate : 1 = 0;
  };
  struct List {
    uint32_t oldest = kNone, newest = kNone;
  };

  void PushNewest(uint32_t run);
  void PutBack(uint32_t run);
  void Unlink(uint32_t run);

  ChunkedArray<Node, 8> nodes_;
  std::vector<List> lists_;  // by space
  uint64_t uses_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_EVICT_LRU_H_
