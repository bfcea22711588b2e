// Holds::SelfCheck: recounts the table from its claims and against the cache's page states.
#include <algorithm>

#include "node/core/holds.h"

namespace pando {

std::string Holds::CheckClaims(absl::flat_hash_set<PageId>* held) const {
  uint64_t leases = 0, reservations = 0, holds = 0;
  HeldPages quarantined;
  for (const auto& [id, claim] : claims_) {
    uint32_t holding = 0, ended = 0;
    for (const Part& part : claim->parts) {
      if (part.state == Part::State::kEnded) ++ended;
      if ((part.state == Part::State::kHolding) == part.pages.empty()) {
        return Text("claim ", id, " has a part with the wrong pages");
      }
      if (part.state != Part::State::kHolding) continue;
      ++holding;
      for (const PageView& view : part.pages) held->insert(view.page.page);
      if (claim->over) quarantined.Add(part.pages, StrideOf(*claim));
    }
    if (holding != claim->holding || ended != claim->ended) {
      return Text("claim ", id, " miscounts its parts");
    }
    if (claim->over && holding == 0) return Text("claim ", id, " is over and was kept");
    if (!claim->over && !deadlines_.contains({claim->terms.deadline, id})) {
      return Text("claim ", id, " stands without a deadline");
    }
    holds += holding;
    if (claim->over) continue;
    ++(claim->store ? reservations : leases);
  }
  if (leases != leases_ || reservations != reservations_ || holds != holds_ ||
      quarantined.bytes() != quarantined_.bytes() || deadlines_.size() != leases + reservations) {
    return Text("claims found: leases ", leases, " reservations ", reservations, " holds ", holds,
                " quarantined bytes ", quarantined.bytes(), " deadlines ", deadlines_.size(),
                "; counted: ", leases_, " ", reservations_, " ", holds_, " ", quarantined_.bytes());
  }
  return "";
}

std::string Holds::SelfCheck(Others others) const {
  if (std::string broken = CheckClaims(&others.held); !broken.empty()) return broken;
  uint64_t listed = 0;
  for (const auto& [replica, claims] : replicas_) {
    uint64_t count = 0, held = 0;
    HeldPages quarantined;
    for (const Claim* claim = claims.oldest; claim != nullptr; claim = claim->newer) {
      ++count;
      for (const Part& part : claim->parts) {
        held += part.pages.size();
        if (claim->over) quarantined.Add(part.pages, StrideOf(*claim));
      }
    }
    if (quarantined.bytes() != claims.quarantined.bytes() || held != claims.pages_held) {
      return Text("replica ", replica, " miscounts its pages");
    }
    if (count != claims.count) return Text("replica ", replica, " miscounts its claims");
    listed += count;
  }
  if (listed != claims_.size()) return "a claim is in no replica's list";

  return CheckCache(others);
}

std::string Holds::CheckCache(const Others& others) const {
  const size_t pages_held = others.held.size();
  PageCounts pages;
  uint64_t pins = 0;
  for (uint32_t i = 0; i < context_->cache.spaces(); ++i) {
    const SpaceId space(i);
    const PageCounts of_space = context_->cache.stats(space).pages;
    pages.reserved += of_space.reserved;
    pages.receiving += of_space.receiving;
    pages.held += of_space.held;
    pages.quarantined += of_space.quarantined;
    context_->cache.VisitRuns(space, UINT64_MAX, [&pins](const RunInfo& run) {
      if (run.run == run.parent) pins += run.pins;  // a pin counts up to the top of its path
    });
  }
  if (pages_held != pages.receiving + pages.held + pages.quarantined) {
    return Text(pages_held, " pages held by somebody; the cache has ", pages.receiving,
                " receiving, ", pages.held, " held, ", pages.quarantined, " quarantined");
  }
  uint64_t writing = others.writing, pinning = others.pinning;
  for (const auto& [id, claim] : claims_) {
    if (claim->store && !claim->over) writing += context_->cache.PagesToWrite(claim->reservation);
    pinning += !claim->store || !claim->over ? 1 : 0;
  }
  if (writing != pages.reserved + pages.receiving) {
    return Text(pages.reserved + pages.receiving, " pages are being written, ", writing,
                " of them for reservations that stand");
  }
  // A path that was cut has lost its pin.
  if (pins > pinning)
    return Text(pins, " pins in the cache, ", pinning, " claims, grants and fetches that pin");
  return "";
}

}  // namespace pando
