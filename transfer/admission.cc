#include "transfer/admission.h"

#include <iterator>
#include <utility>

#include "radix/base/check.h"

namespace pando::transfer {

bool Admission::Admit(const Offer& offer) {
  if (offers_.size() >= limits_.offers) {
    ++offers_refused_;
    return false;
  }
  const bool fresh = offers_.try_emplace(offer.grant, false).second;
  PANDO_CHECK(fresh) << "a grant id is offered twice: " << offer.grant.high << offer.grant.low;
  return true;
}

bool Admission::Admit(const Pull& pull) {
  if (pulls_.size() < limits_.pulls) {
    const bool fresh = pulls_.try_emplace(pull.id, false).second;
    PANDO_CHECK(fresh) << "a pull's id is used twice: " << pull.id;
    return true;
  }
  ++pulls_refused_;
  pages_refused_ += pull.pages.size();
  PullPages failed{pull.id, {}};
  for (uint32_t i = 0; i < pull.pages.size(); ++i) {
    failed.pages.push_back({i, PageOutcome::kFailed});
  }
  if (!failed.pages.empty()) refused_.emplace_back(std::move(failed));
  refused_.emplace_back(PullEnded{pull.id, PullStatus::kOverloaded});
  return false;
}

bool Admission::MayRevoke(const GrantId& grant) {
  const auto it = offers_.find(grant);
  return it != offers_.end() && !std::exchange(it->second, true);
}

bool Admission::MayCancel(uint64_t pull) {
  const auto it = pulls_.find(pull);
  return it != pulls_.end() && !std::exchange(it->second, true);
}

void Admission::Take(std::vector<TransferEvent>* from, std::vector<TransferEvent>* to) {
  for (const TransferEvent& event : *from) {
    if (const auto* pull = std::get_if<PullEnded>(&event)) {
      pulls_.erase(pull->pull);
    } else if (const auto* grant = std::get_if<GrantEnded>(&event)) {
      offers_.erase(grant->grant);
    }
  }
  for (std::vector<TransferEvent>* const events : {from, &refused_}) {
    to->insert(to->end(), std::make_move_iterator(events->begin()),
               std::make_move_iterator(events->end()));
    events->clear();
  }
}

TransferCounters Admission::Added(TransferCounters counters) const {
  counters.offers_refused += offers_refused_;
  counters.pulls_refused += pulls_refused_;
  counters.pulls += pulls_refused_;
  counters.pages_failed += pages_refused_;
  return counters;
}

}  // namespace pando::transfer
