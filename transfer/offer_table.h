// The owner's half of an engine without its transport: what is offered, and what is being sent.
//
//   Start(offer) ─► Take(grant, index, length) ─► a page's bytes, or why not
//                        └─ the transport sends ─► Sent(grant, ...)
//   Revoke(grant) ─► no Take succeeds any more ─► after the last Sent: GrantEnded
//
// Invariants:
//  1. A page's bytes are read only between its Take and its Sent.
//  2. Each page of an offer is taken at most once, and only by who names its grant, its index and
//     its length.
//
// Owner: whoever runs the engine's tables.
#ifndef PANDO_TRANSFER_OFFER_TABLE_H_
#define PANDO_TRANSFER_OFFER_TABLE_H_

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transfer/outbox.h"

namespace pando::transfer {

// On the wire: never renumber.
enum class Refusal : uint8_t {
  kUnknownGrant = 1,  // or revoked
  kUnknownPage = 2,
  kWrongLength = 3,
  kRepeated = 4,
  kOverloaded = 5,
};
inline constexpr uint8_t kRefusals = 5;

class OfferTable {
 public:
  explicit OfferTable(Outbox* out) : out_(out) {}

  void Start(Offer offer);
  void Revoke(const GrantId& grant);

  std::variant<std::span<const std::byte>, Refusal> Take(const GrantId& grant, uint32_t index,
                                                         uint64_t length);
  // The transport is done with a taken page. `well`: it left whole.
  void Sent(const GrantId& grant, uint64_t bytes, bool well);

  size_t size() const { return offers_.size(); }

 private:
  struct State {
    std::vector<OfferedPage> pages;
    std::vector<bool> taken;
    uint32_t sending = 0;
    uint64_t sent = 0;
    bool revoked = false;
  };
  void EndIfOver(const GrantId& grant, const State& state);

  Outbox* const out_;
  absl::flat_hash_map<GrantId, State> offers_;
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_OFFER_TABLE_H_
