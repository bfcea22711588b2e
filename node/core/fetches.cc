#include "node/core/fetches.h"

#include <algorithm>
#include <limits>

#include "node/core/limits.h"
#include "node/core/problem.h"
#include "radix/base/check.h"

namespace pando {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kSecond = 1'000 * kMillisecond;
constexpr uint64_t kFetchBit = uint64_t{1} << 63;

constexpr Nanos kGrantTimeout = 2 * kSecond;
constexpr Nanos kRoundTrips = 2 * kMillisecond;  // of a grant, beside the pull
// A fetch may take so many times as long as it should, and never longer than the last.
constexpr Nanos kPatience = 4;
constexpr Nanos kPatienceLeast = 1 * kSecond;
constexpr Nanos kPatienceUnknown = 10 * kSecond;
constexpr Nanos kPatienceMost = 30 * kSecond;
// A long prefix comes from several holders at once, each at least so much.
constexpr uint64_t kPartBytesMin = 16ull << 20;
constexpr size_t kPartsMax = 4;

}  // namespace

// ---- Plan

// How long the holder's pages take, as far as is known; 0: not known.
Nanos Fetches::PullTime(const Wanted& wanted, const Peers::Holder& holder) const {
  const SpaceShape& shape = context_->cache.shape(wanted.match.space);
  const double bytes = static_cast<double>(holder.blocks) * shape.shards *
                       static_cast<double>(shape.page_bytes.value());
  const std::optional<Nanos> pull = peers_->PullTime(holder.peer, bytes);
  return pull ? kRoundTrips + *pull : 0;
}

// The deepest holder that is faster than computing what it has.
std::optional<Fetches::Plan> Fetches::MakePlan(const Wanted& wanted) const {
  Plan plan;
  plan.holders = peers_->Holders(wanted.keys);
  const uint64_t block_tokens = context_->cache.shape(wanted.match.space).block_tokens;
  for (size_t i = 0; i < plan.holders.size(); ++i) {
    const Peers::Holder& holder = plan.holders[i];
    const Nanos takes = PullTime(wanted, holder);
    const double compute = wanted.prefill_tokens_per_s == 0
                               ? std::numeric_limits<double>::infinity()
                               : static_cast<double>(holder.blocks * block_tokens) * 1e9 /
                                     static_cast<double>(wanted.prefill_tokens_per_s);
    if (static_cast<double>(takes) >= compute) continue;
    plan.blocks = holder.blocks;
    plan.takes = takes;
    plan.holders.erase(plan.holders.begin(), plan.holders.begin() + static_cast<ptrdiff_t>(i));
    return plan;
  }
  if (!plan.holders.empty()) ++context_->counters.fetches_declined;
  return std::nullopt;
}

std::optional<ReplicaNumber> Fetches::Start(const Wanted& wanted) {
  if (fetches_.size() >= limits::kFetches) return std::nullopt;
  const std::optional<Plan> plan = MakePlan(wanted);
  if (!plan) return std::nullopt;
  const uint64_t number = kFetchBit | ++last_;
  const BlockCount to = wanted.match.blocks + BlockCount(plan->blocks);
  const Reservation reservation =
      context_->cache.Reserve(wanted.match.space, wanted.prompt, to, number);
  if (reservation.status != ReserveStatus::kOk) {
    if (reservation.status == ReserveStatus::kFull) ++context_->counters.fetches_full;
    return std::nullopt;
  }
  PANDO_CHECK(reservation.from == wanted.match.blocks) << "a fetch of what is there";
  auto fetch = std::make_unique<Fetch>();
  fetch->number = number;
  fetch->space = wanted.match.space;
  fetch->reservation = reservation;
  const uint32_t block_tokens = context_->cache.shape(fetch->space).block_tokens;
  fetch->prompt =
      std::make_unique<const OwnedPrompt>(FirstBlocks(wanted.prompt, to.value(), block_tokens));
  fetch->keys.assign(wanted.keys.begin(), wanted.keys.end());
  const Nanos patience = plan->takes == 0
                             ? kPatienceUnknown
                             : std::clamp(plan->takes * kPatience, kPatienceLeast, kPatienceMost);
  fetch->deadline = context_->now + patience;
  deadlines_.emplace(fetch->deadline, number);
  ++context_->counters.fetches;
  context_->Reached(CoreStep::kFetchStarted);
  Fetch* started = fetch.get();
  fetches_.emplace(number, std::move(fetch));
  Split(started, *plan);
  return ReplicaNumber(number);
}

// The deepest holder brings the last part, the next one the part before, as far as it has it.
void Fetches::Split(Fetch* fetch, const Plan& plan) {
  const SpaceShape& shape = context_->cache.shape(fetch->space);
  const uint64_t bytes = uint64_t{plan.blocks} * shape.shards * shape.page_bytes.value();
  const size_t parts =
      std::clamp<size_t>(bytes / kPartBytesMin, 1, std::min(kPartsMax, plan.holders.size()));
  const auto each = static_cast<uint32_t>((plan.blocks + parts - 1) / parts);
  const uint32_t base = fetch->reservation.from.value();
  uint32_t end = plan.blocks;
  for (size_t i = 0; i < parts && end > 0; ++i) {
    const bool last = i + 1 == parts || plan.holders[i + 1].blocks + each < end;
    const uint32_t begin = last || end <= each ? 0 : end - each;
    Part part;
    part.peer = plan.holders[i].peer;
    part.from = base + begin;
    part.to = base + end;
    Ask(fetch, std::move(part), std::nullopt);
    end = begin;
  }
}

// ---- Grant

void Fetches::Ask(Fetch* fetch, Part part, std::optional<GrantId> of_grant) {
  part.id = peers_->NextCall();
  part.boot = peers_->boot(part.peer);
  const SpaceShape& shape = context_->cache.shape(fetch->space);
  GrantRequest request;
  request.requester = peers_->mine().boot;
  request.boot = part.boot;
  request.space_identity = shape.identity;
  request.shards = shape.shards;
  request.from = part.from;
  request.to = part.to;
  request.of_grant = of_grant;
  if (!of_grant) {
    request.prompt = FirstBlocks(fetch->prompt->view(), part.to, shape.block_tokens);
  }
  request.life = fetch->deadline - context_->now;
  const Nanos deadline = std::min(context_->now + kGrantTimeout, fetch->deadline);
  context_->outputs->emplace_back(AskPeer{part.peer, part.id, deadline, std::move(request)});
  fetch_of_.emplace(part.id, fetch->number);
  fetch->parts.emplace(part.id, std::move(part));
}

Fetches::Fetch* Fetches::FindPart(uint64_t id, Part** part) {
  const auto it = fetch_of_.find(id);
  if (it == fetch_of_.end()) return nullptr;
  Fetch* fetch = fetches_.at(it->second).get();
  *part = &fetch->parts.at(id);
  return fetch;
}

Fetches::Part Fetches::TakePart(Fetch* fetch, uint64_t id) {
  const auto it = fetch->parts.find(id);
  Part part = std::move(it->second);
  fetch->parts.erase(it);
  fetch_of_.erase(id);
  return part;
}

bool Fetches::Take(PeerAnswered& answered) {
  Part* found = nullptr;
  Fetch* fetch = FindPart(answered.call, &found);
  if (fetch == nullptr) return false;
  PANDO_CHECK(found->pages.empty()) << "an answer to a pull";
  Part part = TakePart(fetch, answered.call);
  auto* answer = answered.answer ? std::get_if<GrantAnswer>(&*answered.answer) : nullptr;
  if (answer == nullptr) {
    peers_->CountGrant(part.peer, PeerCode::kUnknown);
    peers_->Failed(part.peer, answered.why.empty() ? "an answer that is none" : answered.why);
    if (!fetch->over) AskAnother(fetch, part, part.from);
  } else {
    peers_->CountGrant(part.peer, answer->code);
    Granted(fetch, std::move(part), std::move(*answer));
  }
  EraseIfEnded(fetch);
  return true;
}

// What is wrong with a grant, if anything.
std::optional<std::string> Fetches::CheckAnswer(const Fetch& fetch, const Part& part,
                                                const GrantAnswer& answer) const {
  const SpaceShape& shape = context_->cache.shape(fetch.space);
  const bool range = answer.from == part.from && answer.to > answer.from && answer.to <= part.to;
  if (!range) return "it granted other blocks than were asked for";
  const uint64_t pages = uint64_t{answer.to - answer.from} * shape.shards;
  if (answer.checksums.size() != pages || answer.generations.size() != pages) {
    return "its grant has not one checksum and generation a page";
  }
  if (answer.page_bytes != shape.page_bytes) return "its pages have another size";
  return std::nullopt;
}

void Fetches::Granted(Fetch* fetch, Part part, GrantAnswer answer) {
  if (answer.code != PeerCode::kOk) {
    if (answer.code == PeerCode::kInvalid || answer.code == PeerCode::kIncompatible) {
      peers_->Failed(part.peer, "it refused a grant: " + answer.message);
    }
    if (!fetch->over) AskAnother(fetch, part, part.from);
    return;
  }
  part.grant = answer.grant;
  if (const auto wrong = CheckAnswer(*fetch, part, answer)) {
    peers_->Failed(part.peer, *wrong);
    SayDone(part);
    if (!fetch->over) AskAnother(fetch, part, part.from);
    return;
  }
  if (fetch->over) return SayDone(part);
  if (!peers_->Connected(part.peer, part.boot)) return AskAnother(fetch, part, part.from);
  const uint32_t wanted_to = std::exchange(part.to, answer.to);
  if (!HoldPages(fetch, &part)) {  // something above was dropped, and the blocks with it
    SayDone(part);
    return Finish(fetch);
  }
  if (answer.to < wanted_to) {
    Part rest;
    rest.peer = part.peer;
    rest.from = answer.to;
    rest.to = wanted_to;
    rest.retried = part.retried;
    Ask(fetch, std::move(rest), answer.grant);
  }
  Pull(fetch, std::move(part), answer);
}

bool Fetches::HoldPages(Fetch* fetch, Part* part) {
  const uint32_t shards = context_->cache.shape(fetch->space).shards;
  std::vector<PageView> views;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    if (context_->cache.Hold(fetch->reservation.path, BlockCount(part->from), BlockCount(part->to),
                             ShardId(shard), &views)) {
      continue;
    }
    context_->cache.Release(views);
    return false;
  }
  // What an earlier part brought stays as it is: it may be read already.
  part->pages.reserve(views.size());
  for (const PageView& view : views) {
    const bool there = context_->cache.Committed(view.page);
    if (there) context_->cache.Release({&view, 1});
    part->pages.push_back({.view = view, .open = !there, .good = there});
  }
  return true;
}

// ---- End

// The blocks that came stay as far as they go without a gap; who waits looks again.
void Fetches::Finish(Fetch* fetch) {
  if (fetch->over) return;
  fetch->over = true;
  deadlines_.erase({fetch->deadline, fetch->number});
  context_->cache.Finish(fetch->reservation);
  for (const auto& [id, part] : fetch->parts) {
    if (!part.pages.empty()) context_->outputs->emplace_back(CancelPull{id});
  }
  tickets_->Moved(ReplicaNumber(fetch->number));
  context_->Reached(CoreStep::kFetchFinished);
}

void Fetches::EraseIfEnded(Fetch* fetch) {
  if (!fetch->parts.empty()) return;
  Finish(fetch);
  fetches_.erase(fetch->number);
}

void Fetches::PeerOver(PeerId peer) {
  for (const auto& [number, fetch] : fetches_) {
    for (const auto& [id, part] : fetch->parts) {
      if (part.peer != peer || part.pages.empty()) continue;
      context_->outputs->emplace_back(CancelPull{id});
    }
  }
}

void Fetches::Expire() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= context_->now) {
    Fetch* fetch = fetches_.at(deadlines_.begin()->second).get();
    ++context_->counters.fetches_expired;
    Finish(fetch);
    EraseIfEnded(fetch);
  }
}

void Fetches::EndAll() {
  while (!deadlines_.empty()) {
    Fetch* fetch = fetches_.at(deadlines_.begin()->second).get();
    Finish(fetch);
    EraseIfEnded(fetch);
  }
}

Nanos Fetches::next_deadline() const {
  return deadlines_.empty() ? std::numeric_limits<Nanos>::max() : deadlines_.begin()->first;
}

// ---- Reads

std::optional<uint32_t> Fetches::EndOf(ReplicaNumber number) const {
  const auto it = fetches_.find(number.value());
  if (it == fetches_.end()) return std::nullopt;
  return it->second->reservation.to.value();
}

void Fetches::AddHeld(absl::flat_hash_set<PageId>* pages) const {
  for (const auto& [number, fetch] : fetches_) {
    for (const auto& [id, part] : fetch->parts) {
      for (const Page& page : part.pages) {
        if (page.open) pages->insert(page.view.page.page);
      }
    }
  }
}

uint64_t Fetches::PagesToWrite() const {
  uint64_t pages = 0;
  for (const auto& [number, fetch] : fetches_) {
    if (!fetch->over) pages += context_->cache.PagesToWrite(fetch->reservation);
  }
  return pages;
}

std::string Fetches::SelfCheck() const {
  size_t parts = 0, standing = 0;
  for (const auto& [number, fetch] : fetches_) {
    parts += fetch->parts.size();
    if (fetch->parts.empty()) return "a fetch without a part";
    for (const auto& [id, part] : fetch->parts) {
      const auto it = fetch_of_.find(id);
      if (it == fetch_of_.end() || it->second != number) return "a part without its fetch";
    }
    if (fetch->over) continue;
    ++standing;
    if (!deadlines_.contains({fetch->deadline, number})) return "a fetch without a deadline";
  }
  if (parts != fetch_of_.size() || standing != deadlines_.size()) return "fetches are miscounted";
  return "";
}

}  // namespace pando
