// A map from mixed 64-bit keys to 32-bit words in about 21 bytes an entry, that grows without a
// pause.
//
//   segments  0 1 2 3 | 4 5      linear hashing: the low bits of the hash choose a segment; growing
//             │ │                by one splits segment n - 4 = 2 into 2 and 6
//             ▼ ▼
//        [h₀w][h₁w][  ][h₂w][h₃w][h₄w][  ] ...   its entries in order of their hash, each at or
//                                                after home(hash) = high bits x homes
//
//  1. In a segment hashes grow with the place, and no place between an entry's home and the entry
//     is empty. So a search goes from the home up to the first hash that is not smaller, and a
//     segment is copied into a larger one in one pass.
//  2. A segment has about kEntriesPerSegment entries, and an operation copies at most two of them.
//  3. Places are 12 bytes and between 0.47 and 0.69 of them are used while the table grows:
//     fuller, a search for the next empty place would run out of what was fetched ahead.
//
// A hash of all ones marks an empty place; the key that mixes to it shares the place of the hash
// below (one pair of all 2^64 keys). When memory cannot be had segments are not split, an insertion
// that finds no place says so, and nothing is lost. Threads: owner thread only.
#ifndef PANDO_NODE_CORE_CLUSTER_KEY_TABLE_H_
#define PANDO_NODE_CORE_CLUSTER_KEY_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "node/core/cluster/mix.h"
#include "radix/pool/chunked_array.h"

namespace pando {

class KeyTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;  // no word

  // `seed`: random, so that nobody can choose keys that fall into one place. Throws std::bad_alloc
  // if not even the first segments can be had.
  explicit KeyTable(uint64_t seed);
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  uint64_t HashOf(uint64_t key) const { return std::min(mixer_.Mix(key), kEmpty - 1); }
  uint64_t KeyOf(uint64_t hash) const { return mixer_.Unmix(hash); }

  // Starts to load what Find of this hash will read. Always inline: g++ takes a function that only
  // prefetches for one without effect, and drops calls of it.
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const {
    const Segment& segment = segments_[SegmentOf(hash)];
    const Place* home = segment.places + Home(segment, hash);
    __builtin_prefetch(home);
    __builtin_prefetch(home + 5);  // 60 bytes on
  }

  // The word of this hash, or null. Valid until the next insertion or removal.
  uint32_t* Find(uint64_t hash) { return const_cast<uint32_t*>(std::as_const(*this).Find(hash)); }
  const uint32_t* Find(uint64_t hash) const {
    const Place* place = LowerBound(segments_[SegmentOf(hash)], hash);
    return place->hash() == hash ? &place->word : nullptr;
  }
  // The same, with a new word kNone if there was none; null: no memory, nothing was changed.
  uint32_t* FindOrInsert(uint64_t hash) {
    Segment& segment = segments_[SegmentOf(hash)];
    Place* place = LowerBound(segment, hash);
    return place->hash() == hash ? &place->word : Insert(&segment, place, hash);
  }
  // `word` is what Find gave.
  void Erase(uint64_t hash, uint32_t* word);

  // To walk all entries in pieces: segments are never fewer, and what a split moves, it moves to
  // the end. Calls `visit(hash, word)` for each entry of one; an entry whose word it makes kNone is
  // erased. Returns the places looked at.
  uint32_t segments() const { return segment_count_; }
  template <class Visit>
  uint32_t VisitSegment(uint32_t index, const Visit& visit) {
    Segment& segment = segments_[index];
    const uint32_t looked_at = segment.total;
    uint32_t gone = 0;
    for (uint32_t i = 0; i < segment.total; ++i) {
      Place& place = segment.places[i];
      if (place.hash() == kEmpty) continue;
      visit(place.hash(), &place.word);
      gone += place.word == kNone;
    }
    if (gone > 0) Compact(&segment, gone);
    return looked_at;
  }

  // Calls `visit(hash, word)` for each entry.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (uint32_t s = 0; s < segment_count_; ++s) {
      const Segment& segment = segments_[s];
      for (uint32_t i = 0; i < segment.total; ++i) {
        if (segment.places[i].hash() != kEmpty)
          visit(segment.places[i].hash(), segment.places[i].word);
      }
    }
  }

  uint64_t size() const { return size_; }
  uint64_t bytes() const { return segments_.bytes() + place_bytes_; }
  // Empty, or what is broken.
  std::string CheckInvariants() const;

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr uint32_t kFirstSegments = 16;
  static constexpr uint32_t kSegmentsMax = 1u << 31;
  static constexpr uint64_t kEntriesPerSegment = 1024;
  static constexpr uint32_t kHomesMin = 8;
  static constexpr uint32_t kLookedAtBeyond = 3;  // LowerBound reads four places at once

  // Twelve bytes, so no uint64_t.
  struct Place {
    uint32_t hash_words[2];
    uint32_t word;

    uint64_t hash() const {
      uint64_t hash;
      std::memcpy(&hash, hash_words, sizeof(hash));
      return hash;
    }
    void set_hash(uint64_t hash) { std::memcpy(hash_words, &hash, sizeof(hash)); }
  };
  static_assert(sizeof(Place) == 12);

  struct Segment {
    Place* places = nullptr;
    uint32_t used = 0;
    uint32_t homes = 0;
    // Homes and some beyond, of which the last is always empty; then kLookedAtBeyond empty ones.
    uint32_t total = 0;

    uint64_t bytes() const { return (uint64_t{total} + kLookedAtBeyond) * sizeof(Place); }
  };

  uint32_t SegmentOf(uint64_t hash) const {
    const auto segment = static_cast<uint32_t>(hash) & mask_;
    return segment < segment_count_ ? segment : segment & (mask_ >> 1);
  }
  static uint32_t Home(uint64_t hash, uint32_t homes) {
    return static_cast<uint32_t>((hash >> 32) * homes >> 32);
  }
  static uint32_t Home(const Segment& segment, uint64_t hash) { return Home(hash, segment.homes); }
  static Place* LowerBound(const Segment& segment, uint64_t hash) {
    // The smaller ones lie together from the home on, so counting finds the first that is not
    // smaller, without a branch for each that the processor would guess wrong.
    Place* place = segment.places + Home(segment, hash);
    for (;;) {
      const auto smaller = static_cast<uint32_t>(place[0].hash() < hash) +
                           static_cast<uint32_t>(place[1].hash() < hash) +
                           static_cast<uint32_t>(place[2].hash() < hash) +
                           static_cast<uint32_t>(place[3].hash() < hash);
      place += smaller;
      if (smaller < 1 + kLookedAtBeyond) return place;
    }
  }
  static uint32_t RoomyHomes(uint32_t used);

  uint32_t* Insert(Segment* segment, Place* place, uint64_t hash);
  void Compact(Segment* segment, uint32_t gone);
  // A segment of `homes` homes with those entries of `from` that `wanted` and have a word; its
  // places are null if there is no memory.
  template <class Wanted>
  Segment Copy(const Segment& from, uint32_t homes, const Wanted& wanted);
  void Replace(Segment* segment, const Segment& by);
  bool Resize(Segment* segment, uint32_t homes);
  void Grow();
  std::string CheckSegment(uint32_t index) const;

  const KeyMixer mixer_;
  ChunkedArray<Segment, 8> segments_;
  uint32_t segment_count_ = 0;
  uint32_t mask_ = kFirstSegments - 1;
  uint64_t size_ = 0;
  uint64_t place_bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_KEY_TABLE_H_
