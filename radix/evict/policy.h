// EvictionPolicy: which run loses its tail next. A policy chooses, PrefixCache moves.
//
// A policy sees runs as values and never a page, a token or the tree. It is told of everything that
// happens to a run; it answers one question: Victim.
//
//   Insert, Touch    used now. A chain is reported tail first, root last, so a child's last use is
//                    never later than its parent's
//   Split            `upper` is new and takes the first blocks of `lower`; both have its past
//   Merge            `upper` went into `lower`; both had just been touched together
//   Cut, Remove      its tail, or all of it, has gone
//   SetCandidate     it is (or is no longer) a leaf of complete blocks that nobody pins
//
// Invariants: Victim names a candidate, and some candidate if there is one. Each call is O(1) or
// O(log n), amortised. Same calls, same answers. Only MakeRoom and EnsureSpace allocate.
// Threads: owner thread only.
#ifndef PANDO_RADIX_EVICT_POLICY_H_
#define PANDO_RADIX_EVICT_POLICY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "radix/base/ids.h"

namespace pando {

struct RunFacts {
  RunId run;
  SpaceId space;
  BlockCount depth;   // blocks above it
  BlockCount blocks;  // its own
};

// The use that touches a run.
struct UseFacts {
  Nanos now = 0;
  BlockCount fresh;  // blocks of the request that were not in the tree
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // Makes place for run ids below `ids`. False: no memory, nothing was changed.
  virtual bool MakeRoom(uint64_t ids) = 0;
  // Makes `space` exist, which is numbered next or has been made before. False: no memory.
  virtual bool EnsureSpace(SpaceId space) = 0;

  virtual void Insert(const RunFacts& run, const UseFacts& use) = 0;
  virtual void Touch(const RunFacts& run, const UseFacts& use) = 0;
  virtual void Split(const RunFacts& upper, const RunFacts& lower) = 0;
  virtual void Merge(const RunFacts& upper, const RunFacts& lower) = 0;
  virtual void Cut(const RunFacts& run) = 0;
  virtual void Remove(const RunFacts& run) = 0;
  virtual void SetCandidate(RunId run, bool candidate) = 0;

  // Nothing if the space has no candidate.
  virtual std::optional<RunId> Victim(SpaceId space) = 0;

  // Fills `runs` with those that will probably be victims next, as far as it is cheap to say;
  // returns how many. A hint: whoever evicts may load what it will need.
  virtual size_t Upcoming(SpaceId space, std::span<RunId> runs) const = 0;

  virtual bool IsCandidate(RunId run) const = 0;
  virtual Bytes memory() const = 0;
  // Recounts. Empty, or the first broken invariant.
  virtual std::string Check() const = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_EVICT_POLICY_H_
