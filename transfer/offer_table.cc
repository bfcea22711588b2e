#include "transfer/offer_table.h"

#include <utility>

#include "radix/base/check.h"

namespace pando::transfer {

void OfferTable::Start(Offer offer) {
  State state;
  state.taken.resize(offer.pages.size());
  state.pages = std::move(offer.pages);
  const bool fresh = offers_.try_emplace(offer.grant, std::move(state)).second;
  PANDO_CHECK(fresh) << "a grant id is offered twice: " << offer.grant.high << offer.grant.low;
}

void OfferTable::Revoke(const GrantId& grant) {
  const auto it = offers_.find(grant);
  if (it == offers_.end() || it->second.revoked) return;
  it->second.revoked = true;
  EndIfOver(it->first, it->second);
}

std::variant<std::span<const std::byte>, Refusal> OfferTable::Take(const GrantId& grant,
                                                                   uint32_t index,
                                                                   uint64_t length) {
  const auto it = offers_.find(grant);
  if (it == offers_.end() || it->second.revoked) {
    ++out_->counters.refused_grants;
    return Refusal::kUnknownGrant;
  }
  State& state = it->second;
  Refusal refusal{};
  if (index >= state.pages.size()) {
    refusal = Refusal::kUnknownPage;
  } else if (length == 0 || state.pages[index].bytes.size() != length) {
    refusal = Refusal::kWrongLength;
  } else if (state.taken[index]) {
    refusal = Refusal::kRepeated;
  } else {
    state.taken[index] = true;
    ++state.sending;
    return state.pages[index].bytes;
  }
  ++out_->counters.refused_pages;
  return refusal;
}

void OfferTable::Sent(const GrantId& grant, uint64_t bytes, bool well) {
  const auto it = offers_.find(grant);
  PANDO_CHECK(it != offers_.end() && it->second.sending > 0) << "a page that nobody took was sent";
  --it->second.sending;
  if (well) {
    ++it->second.sent;
    ++out_->counters.pages_sent;
    out_->counters.bytes_sent += bytes;
  }
  EndIfOver(it->first, it->second);
}

void OfferTable::EndIfOver(const GrantId& grant, const State& state) {
  if (!state.revoked || state.sending > 0) return;
  out_->events.emplace_back(GrantEnded{grant, state.sent});
  offers_.erase(GrantId(grant));
}

}  // namespace pando::transfer
