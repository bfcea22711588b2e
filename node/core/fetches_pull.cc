// A fetch's parts, once granted: pulled, told of page by page, asked of another.
#include "node/core/fetches.h"
#include "radix/base/check.h"

namespace pando {
namespace {

constexpr Nanos kDoneTimeout = 2'000'000'000;

std::string_view StatusName(PullStatus status) {
  switch (status) {
    case PullStatus::kOk:
      return "ok";
    case PullStatus::kRefused:
      return "the pull was refused";
    case PullStatus::kUnreachable:
      return "its data port cannot be reached";
    case PullStatus::kDeadline:
      return "the pull took too long";
    case PullStatus::kCancelled:
      return "cancelled";
    case PullStatus::kOverloaded:
      return "too many pulls at once here";
    case PullStatus::kTransferLost:
      return "the transfer process here ended";
  }
  return "";
}

bool PeersFault(PullStatus status) {
  return status == PullStatus::kRefused || status == PullStatus::kUnreachable ||
         status == PullStatus::kDeadline;
}

}  // namespace

// ---- Pull

void Fetches::Pull(Fetch* fetch, Part part, const GrantAnswer& answer) {
  part.id = peers_->NextCall();
  StartPull pull;
  pull.pull = part.id;
  pull.address = peers_->data_address(part.peer);
  pull.grant = answer.grant;
  pull.deadline = fetch->deadline;
  pull.page_bytes = answer.page_bytes;
  pull.pages.reserve(part.pages.size());
  for (size_t i = 0; i < part.pages.size(); ++i) {
    Page& page = part.pages[i];
    if (!page.open) continue;
    page.view.checksum = answer.checksums[i];
    part.pulling.push_back(static_cast<uint32_t>(i));
    pull.pages.push_back({static_cast<uint32_t>(i), answer.checksums[i], page.view.page.page});
  }
  context_->outputs->emplace_back(std::move(pull));
  fetch_of_.emplace(part.id, fetch->number);
  fetch->parts.emplace(part.id, std::move(part));
  context_->Reached(CoreStep::kFetchPulling);
}

void Fetches::Take(const PullPages& pages) {
  Part* part = nullptr;
  Fetch* fetch = FindPart(pages.pull, &part);
  PANDO_CHECK(fetch != nullptr) << "outcomes of pull " << pages.pull << ", which is over";
  for (const PullPages::Page& page : pages.pages) {
    PANDO_CHECK(page.position < part->pulling.size()) << "the outcome of no page";
    Outcome(fetch, part, part->pulling[page.position], page.outcome);
  }
}

void Fetches::Outcome(Fetch* fetch, Part* part, uint32_t index, PageOutcome outcome) {
  Page& page = part->pages[index];
  PANDO_CHECK(page.open) << "a second outcome of page " << index;
  page.open = false;
  const uint32_t blocks = part->to - part->from;
  if (outcome == PageOutcome::kArrived) {
    ++part->pulled.pages;
    page.good =
        !fetch->over &&
        context_->cache.Commit(fetch->reservation.path, BlockCount(part->from + index % blocks),
                               ShardId(index / blocks), page.view.page, page.view.checksum);
    context_->counters.peer_pages_stored += page.good ? 1 : 0;
  } else if (outcome == PageOutcome::kBad) {
    ++part->pulled.bad;
    part->bad.push_back(index);
  } else {
    ++part->pulled.failed;
  }
  context_->cache.Release({&page.view, 1});
}

void Fetches::Take(const PullEnded& ended) {
  Part* found = nullptr;
  Fetch* fetch = FindPart(ended.pull, &found);
  PANDO_CHECK(fetch != nullptr) << "pull " << ended.pull << " ended twice";
  Part part = TakePart(fetch, ended.pull);
  part.pulled.bytes = ended.bytes;
  part.pulled.took = ended.took;
  part.pulled.warm = ended.warm;
  uint32_t first_missing = part.to;
  const uint32_t blocks = part.to - part.from;
  for (size_t i = 0; i < part.pages.size(); ++i) {
    PANDO_CHECK(!part.pages[i].open) << "pull " << ended.pull << " ended before page " << i;
    if (part.pages[i].good) continue;
    first_missing = std::min(first_missing, part.from + static_cast<uint32_t>(i) % blocks);
  }
  peers_->CountPull(part.peer, part.pulled);
  if (!part.bad.empty()) {
    peers_->Failed(part.peer, "pages came with another checksum than promised");
  } else if (PeersFault(ended.status)) {
    peers_->Failed(part.peer, std::string(StatusName(ended.status)));
  } else if (ended.status == PullStatus::kOk) {
    peers_->Succeeded(part.peer);
  }
  SayDone(part);
  const bool lost = ended.status == PullStatus::kTransferLost;  // who else is asked is no matter
  if (!fetch->over && first_missing < part.to && !lost) AskAnother(fetch, part, first_missing);
  EraseIfEnded(fetch);
}

// Nobody waits for the answer.
void Fetches::SayDone(const Part& part) {
  if (!part.grant || !peers_->Connected(part.peer, part.boot)) return;
  DoneRequest done;
  done.requester = peers_->mine().boot;
  done.grants.push_back(*part.grant);
  if (!part.bad.empty()) done.bad.push_back({*part.grant, part.bad});
  context_->outputs->emplace_back(
      AskPeer{part.peer, peers_->NextCall(), context_->now + kDoneTimeout, std::move(done)});
}

// The blocks from `from` on, from somebody else, if anybody has them and this is the first try.
void Fetches::AskAnother(Fetch* fetch, const Part& part, uint32_t from) {
  if (part.retried) return;
  const std::span<const uint64_t> keys(fetch->keys);
  const uint32_t at = from - fetch->reservation.from.value();
  for (const Peers::Holder& holder : peers_->Holders(keys.subspan(at, part.to - from))) {
    if (holder.peer == part.peer) continue;
    Part again;
    again.peer = holder.peer;
    again.from = from;
    again.to = from + holder.blocks;
    again.retried = true;
    return Ask(fetch, std::move(again), std::nullopt);
  }
}

}  // namespace pando
