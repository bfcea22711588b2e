// What an engine lets in, decided on its owner's thread before anything is queued for its
// transport.
//
//   Admit(offer) ─► open ─ MayRevoke ─► (queued once) ─► GrantEnded is taken: closed
//   Admit(pull)  ─► open ─ MayCancel ─► (queued once) ─► PullEnded is taken: closed
//          └─ too many ─► its failed pages and its end are among the events taken next
//
// Invariant: whatever the owner calls, an open offer or pull has at most two calls queued, and
// nothing else has any; so the limits on what is open bound the queue.
//
// Owner: the thread that calls the engine.
#ifndef PANDO_TRANSFER_ADMISSION_H_
#define PANDO_TRANSFER_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transfer/engine.h"

namespace pando::transfer {

class Admission {
 public:
  explicit Admission(const TransferLimits& limits) : limits_(limits) {}

  // False: too many are open, and the call is over.
  bool Admit(const Offer& offer);
  bool Admit(const Pull& pull);

  // True once for each open offer, each open pull.
  bool MayRevoke(const GrantId& grant);
  bool MayCancel(uint64_t pull);

  // Appends the transport's events, and those of what was not admitted, in this order.
  void Take(std::vector<TransferEvent>* from, std::vector<TransferEvent>* to);
  bool HasEvents() const { return !refused_.empty(); }

  // The transport's counters with ours.
  TransferCounters Added(TransferCounters counters) const;

 private:
  const TransferLimits limits_;
  absl::flat_hash_map<GrantId, bool> offers_;  // open: whether it was revoked
  absl::flat_hash_map<uint64_t, bool> pulls_;  // open: whether it was cancelled
  std::vector<TransferEvent> refused_;
  uint64_t offers_refused_ = 0, pulls_refused_ = 0, pages_refused_ = 0;
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_ADMISSION_H_
