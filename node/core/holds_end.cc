// The end of a hold: what was read is released, what was written is committed or given up.
#include <algorithm>

#include "node/core/holds.h"
#include "radix/base/check.h"

namespace pando {
namespace {

// Index of the first bad page; `pages` if there is none.
uint32_t FirstBad(const EndItem& item, size_t pages) {
  auto first = static_cast<uint32_t>(pages);
  for (uint32_t bad : item.bad_pages) first = std::min(first, bad);
  return item.failed ? 0 : first;
}

}  // namespace

std::optional<Problem> Holds::CheckEnd(const Worker& worker, const EndItem& item) const {
  Claim* claim = Find(worker.replica, item.claim);
  const Part* part = FindHolding(claim, worker);
  if (part == nullptr) return std::nullopt;
  const size_t pages = part->pages.size();
  const size_t checksums = item.checksums.size();
  const size_t wanted = claim->store && !item.failed ? pages : checksums;
  if (checksums != wanted) {
    return Invalid(Text(checksums, " checksums found for claim ", item.claim, ", ", pages,
                        " allowed: send one for each page of this shard"));
  }
  for (uint32_t bad : item.bad_pages) {
    if (bad >= pages) {
      return Invalid(Text("bad page ", bad, " found for claim ", item.claim, ", below ", pages,
                          " allowed: count pages from the claim's first block"));
    }
  }
  return std::nullopt;
}

Code Holds::End(const Worker& worker, const EndItem& item, bool too_late) {
  Claim* claim = Find(worker.replica, item.claim);
  Part* part = FindHolding(claim, worker);
  if (part == nullptr) return Code::kUnknown;
  Code code = Code::kUnknown;
  if (claim->store) {
    EndItem nothing;
    nothing.failed = true;
    if (!claim->over) code = EndStore(*claim, too_late ? nothing : item, worker.shard, *part);
  } else if (!too_late) {
    // Also if the claim is over: the hold has kept the pages as they were.
    EndLoad(*claim, item, worker.shard, part);
    code = Code::kOk;
  } else {
    DropBad(*claim, item, worker.shard, *part);  // what is bad is bad, however late it is said
  }
  Release(claim, part);
  if (claim->over) {
    if (claim->holding > 0) return code;
    if (!claim->store) ReportLoad(*claim);
    Retire(claim);
  } else if (claim->ended == claim->parts.size()) {
    context_->Reached(CoreStep::kClaimFinished);
    EndClaim(claim);
  }
  return code;
}

void Holds::EndLoad(const Claim& claim, const EndItem& item, ShardId shard, Part* part) {
  const uint32_t good = FirstBad(item, part->pages.size());
  part->good = BlockCount(good);
  context_->counters.pages_loaded += good;
  DropBad(claim, item, shard, *part);
}

void Holds::DropBad(const Claim& claim, const EndItem& item, ShardId shard, const Part& part) {
  if (item.bad_pages.empty()) return;
  // Another may have found them bad before: what that dropped is no block's page any more.
  std::vector<uint32_t> bad = item.bad_pages;
  std::sort(bad.begin(), bad.end());
  bad.erase(std::unique(bad.begin(), bad.end()), bad.end());
  std::erase_if(bad, [&](uint32_t i) { return !context_->cache.InBlock(part.pages[i].page); });
  if (bad.empty()) return;
  // What lies below the first bad page goes with it, and all other bad ones lie there.
  const uint32_t first_bad = bad.front();
  const BlockCount block = claim.reservation.from + BlockCount(first_bad);
  if (!context_->cache.Drop(claim.reservation.path, block, shard, part.pages[first_bad].page)) {
    return;
  }
  context_->counters.pages_bad += bad.size();
  context_->Log(LogLine::Level::kWarning, "page.bad",
                {{"claim", Text(claim.id)},
                 {"block", Text(block)},
                 {"shard", Text(shard)},
                 {"pages", Text(bad.size())}});
}

Code Holds::EndStore(const Claim& claim, const EndItem& item, ShardId shard, const Part& part) {
  const Reservation& blocks = claim.reservation;
  const auto pages = static_cast<uint32_t>(part.pages.size());
  const uint32_t first_bad = FirstBad(item, pages);
  // A failed shard may have sent no checksums; then none is wanted.
  const size_t good = std::min<size_t>(first_bad, item.checksums.size());
  // A block that has gone took all below it along.
  const uint32_t committed =
      context_->cache
          .Commit(blocks.path, blocks.from, shard, std::span(part.pages).first(good),
                  std::span(item.checksums).first(good))
          .value();
  context_->counters.pages_stored += committed;
  if (committed > 0) context_->Reached(CoreStep::kEndCommitted);
  context_->counters.pages_given_up += pages - committed;
  if (first_bad < pages) {
    context_->cache.Drop(blocks.path, blocks.from + BlockCount(first_bad), shard,
                         part.pages[first_bad].page);
  }
  return committed == 0 && first_bad > 0 ? Code::kUnknown : Code::kOk;
}

void Holds::Release(Claim* claim, Part* part) {
  if (claim->over) {
    claim->owner->quarantined.Remove(part->pages, StrideOf(*claim));
    quarantined_.Remove(part->pages, StrideOf(*claim));
    if (claim->store) context_->counters.pages_given_up += part->pages.size();
    context_->Reached(CoreStep::kQuarantineLeft);
  }
  claim->owner->pages_held -= part->pages.size();
  context_->cache.Release(part->pages);
  part->pages.clear();
  part->state = Part::State::kEnded;
  --claim->holding;
  ++claim->ended;
  --holds_;
  context_->Reached(CoreStep::kEndReleased);
}

}  // namespace pando
