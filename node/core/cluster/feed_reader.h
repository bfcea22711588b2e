// FeedReader: what one peer tells, applied to the directories.
//
//   piece ──► the peer's life? ──► the next in order? ──► apply ──► the digest? ──► kApplied
//                  │ no                  │ no                            │ no
//                  └─────────────────────┴───► wants_snapshot() ◄────────┘
//
//  1. After a complete snapshot and the deltas behind it the view is exactly what the peer tells:
//     the digest of each delta says so. FAULTS E1
//  2. A piece that is not the next one, or that says nothing that can be, changes nothing but this
//     reader: it then wants a snapshot and takes nothing else. Other peers' readers do not notice.
//     FAULTS E4
//  3. A snapshot is filled into a hidden view and shown with its last part. Until its first part
//     comes the former view stays in use after a gap or a wrong digest (a wrong claim costs a
//     refused grant); it is dropped at once when the peer has another life, or told nonsense.
//
// Who calls must Sweep the directories in between, and take a snapshot seldom enough (backoff) that
// a peer that always breaks off costs nobody else.
//
// Threads: owner thread only.
#ifndef PANDO_NODE_CORE_CLUSTER_FEED_READER_H_
#define PANDO_NODE_CORE_CLUSTER_FEED_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "node/core/cluster/directory.h"
#include "node/core/cluster/feed.h"
#include "node/core/cluster/limits.h"
#include "node/core/cluster/peer_id.h"

namespace pando {

enum class FeedVerdict : uint8_t {
  kApplied,
  kRepeated,     // the last one once more: no effect
  kWaiting,      // no effect: a snapshot is wanted and this does not begin one
  kGap,          // not the next
  kOtherBoot,    // another life of the peer, in the middle of what it tells
  kWrongDigest,  // the view is not what the peer tells
  kMalformed,    // says nothing that can be
  kTooMuch,      // more than a peer may tell
};
inline constexpr size_t kFeedVerdicts = 8;

class FeedReader {
 public:
  struct Options {
    PeerId peer;
    uint64_t blocks_max = 64ull << 20;  // of the peer, told and being computed
    uint64_t keys_per_piece = limits::kKeysPerPiece;
  };

  // Both directories are shared by all readers and outlive them. `prefilling` has what is being
  // computed: those chains begin where they are computed, not at a root.
  FeedReader(const Options& options, Directory* held, Directory* prefilling);

  FeedVerdict Apply(const FeedPiece& piece);
  // What came was no piece at all.
  FeedVerdict Malformed();
  // The stream has ended, and another will begin. A complete view stands, and can go on from there.
  void Interrupted();
  // The peer is gone: its view with it.
  void Lost();

  // The stream is to be started anew, from `boot` and `sequence` if the view is complete.
  bool wants_snapshot() const { return wants_; }
  bool complete() const { return complete_ && !wants_; }
  BootId boot() const { return boot_; }
  uint64_t sequence() const { return sequence_; }
  uint64_t count(FeedVerdict verdict) const { return counts_[static_cast<size_t>(verdict)]; }

 private:
  FeedVerdict Decide(const FeedPiece& piece);
  FeedVerdict Order(const FeedPiece& piece) const;
  FeedVerdict Put(const FeedPiece& piece);
  bool Agrees(const FeedPiece& piece) const;
  void Complete();
  void Drop(bool hidden);

  const Options options_;
  Directory* const held_;
  Directory* const prefilling_;
  BootId boot_;
  uint64_t sequence_ = 0;
  uint32_t part_ = 0;      // the last of a snapshot that is not complete
  uint32_t stalled_ = 0;   // deltas since then
  bool wants_ = true;      // takes nothing but a first part
  bool complete_ = false;  // the view is a whole one, if perhaps an old one
  std::array<uint64_t, kFeedVerdicts> counts_{};
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_FEED_READER_H_
