#include "node/core/cluster/key_table.h"

#include <bit>
#include <new>

#include "radix/base/check.h"

namespace pando {
namespace {

// A segment that is more than kFull / 64 full is copied into one that is kRoomy / 64 full.
constexpr uint64_t kFull = 44, kRoomy = 30, kSparse = 20;
// Places beyond the homes, for what is pushed over the end.
constexpr uint32_t kBeyond = 8;

}  // namespace

KeyTable::KeyTable(uint64_t seed) : mixer_(seed) {
  if (!segments_.EnsureSize(kFirstSegments)) throw std::bad_alloc();
  for (; segment_count_ < kFirstSegments; ++segment_count_) {
    const Segment fresh = Copy({}, kHomesMin, [](uint64_t) { return true; });
    if (fresh.places == nullptr) throw std::bad_alloc();
    Replace(&segments_[segment_count_], fresh);
  }
}

KeyTable::~KeyTable() {
  for (uint32_t i = 0; i < segment_count_; ++i) delete[] segments_[i].places;
}

uint32_t KeyTable::RoomyHomes(uint32_t used) {
  return std::max(kHomesMin, static_cast<uint32_t>(uint64_t{used} * 64 / kRoomy) + 1);
}

// 1. Walk once to see how far the last entry is pushed. 2. Walk again and place them.
template <class Wanted>
KeyTable::Segment KeyTable::Copy(const Segment& from, uint32_t homes, const Wanted& wanted) {
  const auto each = [&](const auto& place_at) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < from.total; ++i) {
      const uint64_t hash = from.places[i].hash();
      if (hash == kEmpty || from.places[i].word == kNone || !wanted(hash)) continue;
      const uint32_t at = std::max(next, Home(hash, homes));
      place_at(next, at, from.places[i]);
      next = at + 1;
    }
    return next;
  };
  const uint32_t end = each([](uint32_t, uint32_t, const Place&) {});
  Segment to;
  to.homes = homes;
  to.total = std::max(homes, end) + kBeyond;
  to.places = new (std::nothrow) Place[to.total + kLookedAtBeyond];
  if (to.places == nullptr) return to;
  const Place empty{{UINT32_MAX, UINT32_MAX}, kNone};
  each([&](uint32_t next, uint32_t at, const Place& place) {
    std::fill(to.places + next, to.places + at, empty);
    to.places[at] = place;
    ++to.used;
  });
  std::fill(to.places + end, to.places + to.total + kLookedAtBeyond, empty);
  return to;
}

void KeyTable::Replace(Segment* segment, const Segment& by) {
  place_bytes_ += by.bytes();
  if (segment->places != nullptr) place_bytes_ -= segment->bytes();
  delete[] segment->places;
  *segment = by;
}

bool KeyTable::Resize(Segment* segment, uint32_t homes) {
  const Segment to = Copy(*segment, homes, [](uint64_t) { return true; });
  if (to.places == nullptr) return false;
  Replace(segment, to);
  return true;
}

uint32_t* KeyTable::Insert(Segment* segment, Place* place, uint64_t hash) {
  if (size_ >= segment_count_ * kEntriesPerSegment) {
    Grow();
    segment = &segments_[SegmentOf(hash)];
    place = LowerBound(*segment, hash);
  }
  const Place* const last = segment->places + segment->total - 1;
  Place* empty = place;
  while (empty->hash() != kEmpty) ++empty;
  if ((segment->used + 1) * uint64_t{64} > segment->homes * kFull || empty == last) {
    // At a jam at the end of a segment with room a few more homes spread it.
    const uint32_t homes = std::max(RoomyHomes(segment->used), segment->homes + segment->homes / 8);
    if (Resize(segment, homes)) {
      place = LowerBound(*segment, hash);
      empty = place;
      while (empty->hash() != kEmpty) ++empty;
    } else if (empty == last) {
      return nullptr;
    }
  }
  for (; empty != place; --empty) *empty = *(empty - 1);
  place->set_hash(hash);
  place->word = kNone;
  ++segment->used;
  ++size_;
  return &place->word;
}

// What follows moves down by one, up to the first that is at home.
void KeyTable::Erase(uint64_t hash, uint32_t* word) {
  Segment* segment = &segments_[SegmentOf(hash)];
  Place* place = LowerBound(*segment, hash);
  PANDO_CHECK(&place->word == word) << "erased a word that is another's";
  for (;; ++place) {
    const uint64_t next = place[1].hash();
    if (next == kEmpty || segment->places + Home(*segment, next) == place + 1) break;
    *place = place[1];
  }
  *place = {{UINT32_MAX, UINT32_MAX}, kNone};
  --segment->used;
  --size_;
  if (segment->used * uint64_t{64} < segment->homes * kSparse && segment->homes > kHomesMin) {
    Resize(segment, RoomyHomes(segment->used));
  }
}

void KeyTable::Compact(Segment* segment, uint32_t gone) {
  size_ -= gone;
  const uint32_t left = segment->used - gone;
  const bool sparse = left * uint64_t{64} < segment->homes * kSparse;
  if (Resize(segment, sparse ? RoomyHomes(left) : segment->homes)) return;
  // No memory: in place. Each goes to its home or behind the one before, so never up.
  const Place empty{{UINT32_MAX, UINT32_MAX}, kNone};
  uint32_t next = 0;
  for (uint32_t i = 0; i < segment->total; ++i) {
    const Place place = segment->places[i];
    segment->places[i] = empty;
    if (place.hash() == kEmpty || place.word == kNone) continue;
    const uint32_t at = std::max(next, Home(*segment, place.hash()));
    segment->places[at] = place;
    next = at + 1;
  }
  segment->used = left;
}

// Adds segment `segment_count_` and moves to it what belongs there.
void KeyTable::Grow() {
  if (segment_count_ == kSegmentsMax || !segments_.EnsureSize(uint64_t{segment_count_} + 1)) return;
  const uint32_t added = segment_count_;
  const uint32_t mask = std::bit_ceil(added + 1) - 1;
  Segment* split = &segments_[added & (mask >> 1)];
  const uint32_t half = RoomyHomes(split->used / 2);
  const auto moves = [&](uint64_t hash) { return (static_cast<uint32_t>(hash) & mask) == added; };
  const Segment moved = Copy(*split, half, moves);
  const Segment kept = Copy(*split, half, [&](uint64_t hash) { return !moves(hash); });
  if (moved.places == nullptr || kept.places == nullptr) {
    delete[] moved.places;
    delete[] kept.places;
    return;
  }
  Replace(split, kept);
  Replace(&segments_[added], moved);
  segment_count_ = added + 1;
  mask_ = mask;
}

std::string KeyTable::CheckInvariants() const {
  uint64_t used = 0, bytes = 0;
  for (uint32_t s = 0; s < segment_count_; ++s) {
    if (std::string broken = CheckSegment(s); !broken.empty()) return broken;
    used += segments_[s].used;
    bytes += segments_[s].bytes();
  }
  if (used != size_) return "segments have other entries than the table counts";
  if (bytes != place_bytes_) return "segments have other bytes than the table counts";
  return {};
}

std::string KeyTable::CheckSegment(uint32_t index) const {
  const Segment& segment = segments_[index];
  const std::string name = "segment " + std::to_string(index);
  uint32_t used = 0, run = 0;  // where the run of used places began
  uint64_t above = 0;
  for (uint32_t i = 0; i < segment.total; ++i) {
    const uint64_t hash = segment.places[i].hash();
    if (hash == kEmpty) {
      run = i + 1;
      continue;
    }
    ++used;
    if (SegmentOf(hash) != index) return name + " has an entry of another";
    if (used > 1 && hash <= above) return name + " is not in order";
    if (Home(segment, hash) > i || Home(segment, hash) < run) return name + ": a lost entry";
    if (segment.places[i].word == kNone) return name + ": an entry without a word";
    above = hash;
  }
  if (used != segment.used) return name + " counts wrongly";
  if (run != segment.total) return name + " has no empty place at its end";
  return {};
}

}  // namespace pando
