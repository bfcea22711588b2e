#include "node/core/cluster/feed_reader.h"

namespace pando {
namespace {

// So many deltas in the middle of a snapshot without a part of it: none will come.
constexpr uint32_t kStalled = 1024;

}  // namespace

FeedReader::FeedReader(const Options& options, Directory* held, Directory* prefilling)
    : options_(options), held_(held), prefilling_(prefilling) {}

FeedVerdict FeedReader::Apply(const FeedPiece& piece) {
  const FeedVerdict verdict = Decide(piece);
  ++counts_[static_cast<size_t>(verdict)];
  switch (verdict) {
    case FeedVerdict::kApplied:
    case FeedVerdict::kRepeated:
    case FeedVerdict::kWaiting:
      break;
    case FeedVerdict::kMalformed:
    case FeedVerdict::kTooMuch:
      Drop(false);
      [[fallthrough]];
    case FeedVerdict::kGap:
    case FeedVerdict::kOtherBoot:
    case FeedVerdict::kWrongDigest:
      wants_ = true;
      break;
  }
  return verdict;
}

FeedVerdict FeedReader::Malformed() {
  ++counts_[static_cast<size_t>(FeedVerdict::kMalformed)];
  Drop(false);
  wants_ = true;
  return FeedVerdict::kMalformed;
}

void FeedReader::Interrupted() {
  if (!complete_) wants_ = true;
}

void FeedReader::Lost() {
  Drop(false);
  wants_ = true;
  boot_ = {};
  sequence_ = 0;
}

FeedVerdict FeedReader::Decide(const FeedPiece& piece) {
  const bool is_part = piece.part > 0;
  if (piece.boot == BootId() || (piece.last && !is_part)) return FeedVerdict::kMalformed;
  if (is_part && !(piece.removes.empty() && piece.prefill_removes.empty())) {
    return FeedVerdict::kMalformed;
  }
  if (piece.keys() > options_.keys_per_piece) return FeedVerdict::kTooMuch;
  if (piece.boot != boot_) {
    const bool first = boot_ == BootId();
    Drop(false);
    wants_ = true;
    boot_ = piece.boot;
    sequence_ = 0;
    if (piece.part != 1) return first ? FeedVerdict::kWaiting : FeedVerdict::kOtherBoot;
  }
  const FeedVerdict order = Order(piece);
  return order == FeedVerdict::kApplied ? Put(piece) : order;
}

// kApplied: it is the next.
FeedVerdict FeedReader::Order(const FeedPiece& piece) const {
  if (piece.part == 1) {
    // Not asked for: the peer found this node too slow, so its snapshot is newer.
    if (wants_ || piece.sequence > sequence_) return FeedVerdict::kApplied;
    return piece.sequence == sequence_ ? FeedVerdict::kRepeated : FeedVerdict::kGap;
  }
  if (wants_) return FeedVerdict::kWaiting;
  if (piece.part == 0) {
    if (piece.sequence == sequence_ + 1) return FeedVerdict::kApplied;
    return piece.sequence == sequence_ ? FeedVerdict::kRepeated : FeedVerdict::kGap;
  }
  if (piece.sequence != sequence_) return FeedVerdict::kGap;
  if (piece.part == part_) return FeedVerdict::kRepeated;
  return part_ > 0 && piece.part == part_ + 1 ? FeedVerdict::kApplied : FeedVerdict::kGap;
}

FeedVerdict FeedReader::Put(const FeedPiece& piece) {
  if (piece.part == 1) {
    Drop(true);
    wants_ = false;
  }
  const uint64_t told = held_->blocks(options_.peer) + prefilling_->blocks(options_.peer);
  if (told + piece.adds.size() + piece.prefill_adds.size() > options_.blocks_max) {
    return FeedVerdict::kTooMuch;
  }
  held_->Remove(options_.peer, piece.removes);
  held_->Add(options_.peer, piece.adds);
  prefilling_->Remove(options_.peer, piece.prefill_removes);
  prefilling_->Add(options_.peer, piece.prefill_adds);
  sequence_ = piece.sequence;
  if (piece.part > 0) {
    part_ = piece.last ? 0 : piece.part;
    stalled_ = 0;
    if (!piece.last) return FeedVerdict::kApplied;
  }
  if (Agrees(piece)) {
    Complete();
    return FeedVerdict::kApplied;
  }
  if (complete_ || piece.last) return FeedVerdict::kWrongDigest;
  return ++stalled_ > kStalled ? FeedVerdict::kGap : FeedVerdict::kApplied;
}

bool FeedReader::Agrees(const FeedPiece& piece) const {
  const auto sum = [&](const Directory& of) {
    return KeySum{of.digest(options_.peer), of.blocks(options_.peer)};
  };
  return sum(*held_) == piece.held && sum(*prefilling_) == piece.prefilling;
}

void FeedReader::Complete() {
  if (complete_) return;
  complete_ = true;
  held_->Show(options_.peer);
  prefilling_->Show(options_.peer);
}

void FeedReader::Drop(bool hidden) {
  held_->RemovePeer(options_.peer, hidden);
  prefilling_->RemovePeer(options_.peer, hidden);
  complete_ = false;
  part_ = stalled_ = 0;
}

}  // namespace pando
