// What subscribers get: deltas that are made once for all, and parts of snapshots.
#include <utility>

#include "node/core/cluster/advertiser.h"

namespace pando {
namespace {

constexpr uint64_t kBytesPerPiece = sizeof(FeedPiece) + 64;
// A part looks at so many blocks for each key it may tell.
constexpr uint64_t kLookedAtPerKey = 4;

uint64_t BytesOf(const FeedPiece& piece) {
  return kBytesPerPiece + piece.keys() * sizeof(uint64_t);
}

}  // namespace

void Advertiser::Flush(Nanos now, bool even_empty) {
  Rebalance();
  const uint64_t before = sequence_;
  std::shared_ptr<FeedPiece> piece;
  TellBlocks(&piece);
  TellPrefills(&piece);
  if (piece == nullptr && sequence_ == before &&
      (even_empty || never_flushed_ || now - last_delta_ >= options_.digest_every)) {
    Room(&piece);
  }
  Seal(&piece);
  if (sequence_ != before) last_delta_ = now;
  never_flushed_ = false;
}

// The piece that is being made, or the next.
FeedPiece* Advertiser::Room(std::shared_ptr<FeedPiece>* piece) {
  if (*piece != nullptr && (*piece)->keys() >= options_.keys_per_piece) Seal(piece);
  if (*piece == nullptr) {
    *piece = std::make_shared<FeedPiece>();
    (*piece)->boot = options_.boot;
    (*piece)->sequence = ++sequence_;
  }
  return piece->get();
}

void Advertiser::Seal(std::shared_ptr<FeedPiece>* piece) {
  if (*piece == nullptr) return;
  (*piece)->held = told_;
  (*piece)->prefilling = prefilling_;
  ++counters_.deltas;
  backlog_bytes_ += BytesOf(**piece);
  backlog_.push_back(std::move(*piece));
  piece->reset();
  while (!backlog_.empty() && backlog_bytes_ > options_.backlog.value()) {
    backlog_bytes_ -= BytesOf(*backlog_.front());
    backlog_.pop_front();
  }
}

// Blocks are marked in the order of their first change: a block leaves after those below it and
// comes after those above it. So all removes and then all adds, each in that order, keep what is
// told closed at every point.
void Advertiser::TellBlocks(std::shared_ptr<FeedPiece>* piece) {
  for (const uint32_t id : changed_) {
    Block& block = blocks_[id];
    if (block.chosen || !block.told) continue;
    Room(piece)->removes.push_back(block.key);
    block.told = false;
    told_.Remove(block.key);
    ++counters_.removes;
  }
  for (const uint32_t id : changed_) {
    Block& block = blocks_[id];
    if (!block.chosen || block.told) continue;
    Room(piece)->adds.push_back(block.key);
    block.told = true;
    told_.Add(block.key);
    ++counters_.adds;
  }
  FreeGone();
}

void Advertiser::FreeGone() {
  for (const uint32_t id : changed_) {
    Block& block = blocks_[id];
    block.changed = false;
    if (block.tiers != 0) continue;
    index_.Remove(id);
    block.older = free_;
    free_ = id;
  }
  changed_.clear();
}

void Advertiser::TellPrefills(std::shared_ptr<FeedPiece>* piece) {
  for (const uint64_t key : prefills_changed_) {
    const auto found = prefills_.find(key);
    if (found == prefills_.end()) continue;
    Prefill& prefill = found->second;
    if (prefill.count > 0 && !prefill.told) {
      Room(piece)->prefill_adds.push_back(key);
      prefilling_.Add(key);
      prefill.told = true;
    } else if (prefill.count == 0) {
      if (prefill.told) {
        Room(piece)->prefill_removes.push_back(key);
        prefilling_.Remove(key);
      }
      prefills_.erase(found);
    }
  }
  prefills_changed_.clear();
}

// ---- Subscribers

SubscriberId Advertiser::Subscribe() {
  subscribers_.try_emplace(next_subscriber_);
  return SubscriberId(next_subscriber_++);
}

SubscriberId Advertiser::Subscribe(BootId boot, uint64_t sequence) {
  const SubscriberId id = Subscribe();
  if (boot == options_.boot && sequence <= sequence_ && sequence > 0) {
    subscribers_[id.value()] = {.sequence = sequence, .snapshot = false};
  }
  return id;
}

void Advertiser::Unsubscribe(SubscriberId id) {
  subscribers_.erase(id.value());
}

std::shared_ptr<const FeedPiece> Advertiser::Take(SubscriberId id) {
  const auto found = subscribers_.find(id.value());
  if (found == subscribers_.end()) return nullptr;
  Subscriber& subscriber = found->second;
  const bool begun = !subscriber.snapshot || subscriber.part > 0;
  if (begun && subscriber.sequence < sequence_) {
    const uint64_t wanted = subscriber.sequence + 1;
    if (!backlog_.empty() && backlog_.front()->sequence <= wanted) {
      subscriber.sequence = wanted;
      return backlog_[wanted - backlog_.front()->sequence];
    }
    ++counters_.fell_behind;
    subscriber = {};
  }
  return subscriber.snapshot ? NextPart(&subscriber) : nullptr;
}

// What a later delta takes back of an earlier part is in the view by then, and what it adds may be
// told again by a later part: with the last part the view is what is told.
std::shared_ptr<const FeedPiece> Advertiser::NextPart(Subscriber* subscriber) {
  auto piece = std::make_shared<FeedPiece>();
  if (subscriber->part == 0) {
    ++counters_.snapshots;
    for (const auto& [key, prefill] : prefills_) {
      if (prefill.told) piece->prefill_adds.push_back(key);
    }
  }
  piece->boot = options_.boot;
  piece->sequence = subscriber->sequence = sequence_;
  piece->part = ++subscriber->part;
  uint64_t looks = options_.keys_per_piece * kLookedAtPerKey;
  while (subscriber->at < used_ && piece->adds.size() < options_.keys_per_piece && looks-- > 0) {
    const Block& block = blocks_[subscriber->at++];
    if (block.told) piece->adds.push_back(block.key);
  }
  if (subscriber->at == used_) {
    piece->last = true;
    piece->held = told_;
    piece->prefilling = prefilling_;
    *subscriber = {.sequence = sequence_, .snapshot = false};
  }
  ++counters_.parts;
  return piece;
}

}  // namespace pando
