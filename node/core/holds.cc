#include "node/core/holds.h"

#include <algorithm>
#include <limits>

#include "node/core/limits.h"
#include "radix/base/check.h"

namespace pando {
namespace {

constexpr size_t kSpareClaims = 256;
constexpr size_t kSparePages = 2048;  // capacity that a spare claim may keep, a shard

uint64_t QuarantineCap(Bytes slab) {
  // In whole numbers, so that every machine decides alike.
  static_assert(limits::kQuarantineShare == 0.05);
  return std::max(limits::kQuarantineBytesMin, slab.value() / 20);
}

}  // namespace

Holds::Holds(CoreContext* context, Ledger* ledger, Tickets* tickets,
             const NodeCore::Options& options)
    : context_(context),
      ledger_(ledger),
      tickets_(tickets),
      quarantine_cap_(QuarantineCap(options.slab_bytes)),
      next_claim_(options.first_claim.value()) {}

Holds::~Holds() = default;

Holds::Claim* Holds::Find(ReplicaNumber replica, ClaimId id) const {
  auto it = claims_.find(id);
  if (it == claims_.end() || it->second->terms.request.replica != replica) return nullptr;
  return it->second.get();
}

Holds::Part* Holds::FindHolding(Claim* claim, const Worker& worker) const {
  if (claim == nullptr || worker.shard.value() >= claim->parts.size()) return nullptr;
  Part& part = claim->parts[worker.shard.value()];
  return part.state == Part::State::kHolding && part.session == worker.session ? &part : nullptr;
}

Holds::Claim* Holds::Add(const ClaimTerms& terms, bool store, const Reservation& reservation) {
  std::unique_ptr<Claim> claim;
  if (spare_.empty()) {
    claim = std::make_unique<Claim>();
  } else {
    claim = std::move(spare_.back());
    spare_.pop_back();
  }
  claim->id = ClaimId(next_claim_++);
  claim->terms = terms;
  claim->store = store;
  claim->reservation = reservation;
  claim->parts.resize(context_->cache.shape(terms.space).shards);
  ReplicaClaims& owner = replicas_[terms.request.replica];
  claim->owner = &owner;
  claim->older = owner.newest;
  (owner.newest == nullptr ? owner.oldest : owner.newest->newer) = claim.get();
  owner.newest = claim.get();
  ++owner.count;
  ++(store ? reservations_ : leases_);
  deadlines_.emplace(terms.deadline, claim->id);
  Claim* added = claim.get();
  claims_.emplace(added->id, std::move(claim));
  return added;
}

std::optional<ClaimId> Holds::Lease(const ClaimTerms& terms, const Match& match) {
  std::optional<PathRef> path = context_->cache.Pin(match);
  if (!path) return std::nullopt;
  Reservation whole{ReserveStatus::kOk, *path, BlockCount(0), match.blocks};
  const Claim* claim = Add(terms, /*store=*/false, whole);
  context_->Reached(CoreStep::kAcquireLeased);
  return claim->id;
}

void Holds::Touch(const Match& match) {
  if (std::optional<PathRef> path = context_->cache.Pin(match)) context_->cache.Unpin(*path);
}

ClaimId Holds::Reserve(const ClaimTerms& terms, const Reservation& reservation) {
  const Claim* claim = Add(terms, /*store=*/true, reservation);
  context_->Reached(CoreStep::kReservePlaced);
  return claim->id;
}

void Holds::Begin(const Worker& worker, ClaimId id, uint64_t room, BeginItem* item) {
  item->claim = id;
  Claim* claim = Find(worker.replica, id);
  if (claim == nullptr || claim->over) {
    item->code = Code::kUnknown;
    item->message = Text("claim ", id, " has ended or never was this replica's: touch nothing");
    return;
  }
  PANDO_CHECK(worker.shard.value() < claim->parts.size()) << "shard " << worker.shard;
  Part& part = claim->parts[worker.shard.value()];
  if (part.state != Part::State::kIdle) {
    item->code = Code::kUnknown;
    item->message =
        Text("claim ", id, " was begun by shard ", worker.shard, " before: begin a claim once");
    return;
  }
  const Reservation& blocks = claim->reservation;
  const uint64_t pages = (blocks.to - blocks.from).value();
  if (pages > room) {
    item->code = Code::kLimit;
    item->message =
        Text(pages, " pages of claim ", id, " found, at most ", room, " left of the ",
             limits::kPagesPerBegin, " that one begin may name: begin it in another message");
    return;
  }
  const uint64_t held = claim->owner->pages_held;
  if (held + pages > limits::kPagesHeldPerReplica) {
    item->code = Code::kUnavailable;
    item->message =
        Text(pages, " pages of claim ", id, " found, at most ", limits::kPagesHeldPerReplica - held,
             " left of the ", limits::kPagesHeldPerReplica,
             " that one replica may hold: end other holds");
    return;
  }
  if (!context_->cache.Hold(blocks.path, blocks.from, blocks.to, worker.shard, &part.pages)) {
    item->code = Code::kUnknown;
    item->message = Text("pages of claim ", id, " have gone: touch nothing");
    part.state = Part::State::kEnded;
    if (++claim->ended == claim->parts.size()) EndClaim(claim);
    return;
  }
  part.state = Part::State::kHolding;
  part.session = worker.session;
  ++claim->holding;
  claim->owner->pages_held += pages;
  ++holds_;
  FillItem(*claim, part, item);
  context_->Reached(CoreStep::kBeginHeld);
}

void Holds::FillItem(const Claim& claim, const Part& part, BeginItem* item) const {
  item->store = claim.store;
  item->first_block = claim.reservation.from.value();
  item->page_bytes = context_->cache.shape(claim.terms.space).page_bytes;
  const size_t count = part.pages.size();
  item->pages.reserve(count);
  item->generations.reserve(count);
  if (!claim.store) item->checksums.reserve(count);
  for (const PageView& view : part.pages) {
    item->pages.push_back(view.page.page);
    item->generations.push_back(view.page.generation);
    if (!claim.store) item->checksums.push_back(view.checksum);
  }
}

void Holds::GiveUpIdle(ReplicaNumber replica, ClaimId id) {
  Claim* claim = Find(replica, id);
  if (claim != nullptr && !claim->over && claim->holding + claim->ended == 0) EndClaim(claim);
}

bool Holds::Abort(ReplicaNumber replica, ClaimId id) {
  Claim* claim = Find(replica, id);
  if (claim == nullptr || claim->over) return false;
  context_->Reached(CoreStep::kClaimAborted);
  EndClaim(claim);
  return true;
}

void Holds::Expire() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= context_->now) {
    Claim* claim = claims_.find(deadlines_.begin()->second)->second.get();
    ++context_->counters.claims_expired;
    context_->Log(LogLine::Level::kInfo, "claim.expired",
                  {{"claim", Text(claim->id)},
                   {"kind", claim->store ? "store" : "load"},
                   {"shards_holding", Text(claim->holding)}});
    context_->Reached(CoreStep::kClaimExpired);
    EndClaim(claim);
  }
}

void Holds::EndClaimsOf(ReplicaNumber replica) {
  auto it = replicas_.find(replica);
  if (it == replicas_.end()) return;
  for (Claim* claim = it->second.oldest; claim != nullptr;) {
    Claim* next = claim->newer;
    if (!claim->over) {
      context_->Reached(CoreStep::kClaimLost);
      EndClaim(claim);
    }
    claim = next;
  }
}

void Holds::ReleaseAllOf(ReplicaNumber replica, SessionId session) {
  auto it = replicas_.find(replica);
  if (it == replicas_.end()) return;
  for (Claim* claim = it->second.oldest; claim != nullptr;) {
    Claim* next = claim->newer;
    for (Part& part : claim->parts) {
      if (part.state != Part::State::kHolding || part.session != session) continue;
      PANDO_CHECK(claim->over) << "claim " << claim->id << " stands without its session";
      Release(claim, &part);
    }
    if (claim->over && claim->holding == 0) Retire(claim);
    claim = next;
  }
}

bool Holds::HoldsAny(ReplicaNumber replica, SessionId session) const {
  auto it = replicas_.find(replica);
  if (it == replicas_.end()) return false;
  for (const Claim* claim = it->second.oldest; claim != nullptr; claim = claim->newer) {
    for (const Part& part : claim->parts) {
      if (part.state == Part::State::kHolding && part.session == session) return true;
    }
  }
  return false;
}

void Holds::Forget(ReplicaNumber replica) {
  auto it = replicas_.find(replica);
  if (it == replicas_.end()) return;
  PANDO_CHECK(it->second.count == 0 && it->second.quarantined.bytes() == 0)
      << "replica " << replica << " is gone and has " << it->second.count << " claims";
  replicas_.erase(it);
}

// The claim is over; its holds, if any, go on.
void Holds::EndClaim(Claim* claim) {
  PANDO_CHECK(!claim->over) << "claim " << claim->id << " ends twice";
  claim->over = true;
  deadlines_.erase({claim->terms.deadline, claim->id});
  --(claim->store ? reservations_ : leases_);
  if (claim->store) {
    const bool whole = context_->cache.PagesToWrite(claim->reservation) == 0 &&
                       claim->ended == claim->parts.size();
    context_->cache.Finish(claim->reservation);
    tickets_->StoreEnded(claim->terms.request, claim->reservation.to.value(), whole);
  } else {
    ReportLoad(*claim);
  }
  if (claim->holding == 0) {
    Retire(claim);
    return;
  }
  for (const Part& part : claim->parts) {
    claim->owner->quarantined.Add(part.pages, StrideOf(*claim));
    quarantined_.Add(part.pages, StrideOf(*claim));
  }
  context_->Reached(CoreStep::kQuarantineEntered);
}

// A load counts as far as it reached every shard without a gap.
void Holds::ReportLoad(const Claim& claim) {
  const bool begun = claim.holding + claim.ended > 0;
  if (!begun || claim.terms.request.request == RequestId()) return;
  uint64_t good = 0;
  if (claim.ended == claim.parts.size()) {
    good = claim.reservation.to.value();
    for (const Part& part : claim.parts) good = std::min<uint64_t>(good, part.good.value());
  }
  const uint64_t block_tokens = context_->cache.shape(claim.terms.space).block_tokens;
  ledger_->LoadEnded(claim.terms.request, good * block_tokens,
                     (claim.reservation.to.value() - good) * block_tokens);
}

void Holds::Retire(Claim* claim) {
  if (!claim->store) context_->cache.Unpin(claim->reservation.path);
  ReplicaClaims* owner = claim->owner;
  (claim->newer == nullptr ? owner->newest : claim->newer->older) = claim->older;
  (claim->older == nullptr ? owner->oldest : claim->older->newer) = claim->newer;
  --owner->count;
  auto it = claims_.find(claim->id);
  std::unique_ptr<Claim> spare = std::move(it->second);
  claims_.erase(it);
  if (spare_.size() >= kSpareClaims) return;
  std::vector<Part> parts = std::move(spare->parts);
  for (Part& part : parts) {
    std::vector<PageView> pages = std::move(part.pages);
    pages.clear();
    if (pages.capacity() > kSparePages) pages = {};
    part = Part{};
    part.pages = std::move(pages);
  }
  *spare = Claim{};
  spare->parts = std::move(parts);
  spare_.push_back(std::move(spare));
}

Bytes Holds::StrideOf(const Claim& claim) const {
  return PageStride(context_->cache.shape(claim.terms.space).page_bytes);
}

std::optional<Problem> Holds::CheckRoom(ReplicaNumber replica) const {
  auto it = replicas_.find(replica);
  if (it == replicas_.end() || it->second.count < limits::kClaimsPerReplica) return std::nullopt;
  return OverLimit("claims", it->second.count + 1, limits::kClaimsPerReplica, "in one replica",
                   "end or abort those that are done");
}

bool Holds::OverQuarantineCap(ReplicaNumber replica) const {
  auto it = replicas_.find(replica);
  return it != replicas_.end() && it->second.quarantined.bytes() > quarantine_cap_;
}

Nanos Holds::next_deadline() const {
  return deadlines_.empty() ? std::numeric_limits<Nanos>::max() : deadlines_.begin()->first;
}

}  // namespace pando
