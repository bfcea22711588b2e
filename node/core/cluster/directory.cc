#include "node/core/cluster/directory.h"

#include <algorithm>
#include <array>
#include <new>

#include "radix/base/check.h"

namespace pando {
namespace {

// Lookup looks at this many blocks of a chain first, all at once.
constexpr uint32_t kFirstProbes = 16;
// And then at so many between two that have other holders.
constexpr uint32_t kFinerProbes = 3;
constexpr HolderSet kNotRead = 0xfffffffe;  // no set's word: ids are far below

}  // namespace

Directory::Directory(uint64_t seed) : table_(seed) {}
Directory::~Directory() = default;

uint32_t Directory::HolderOf(PeerId peer) {
  const auto [entry, fresh] = holder_of_.try_emplace(peer, 0);
  if (!fresh) return entry->second;
  uint32_t holder = 0;
  if (free_holders_.empty()) {
    holder = static_cast<uint32_t>(holders_.size());
    PANDO_CHECK(holder < HolderSets::kHoldersMax) << "too many peers";
    holders_.emplace_back();
  } else {
    holder = free_holders_.back();
    free_holders_.pop_back();
  }
  holders_[holder] = {.peer = peer, .used = true};
  entry->second = holder;
  return holder;
}

const Directory::Holder* Directory::Find(PeerId peer) const {
  const auto entry = holder_of_.find(peer);
  return entry == holder_of_.end() ? nullptr : &holders_[entry->second];
}

// While one key is worked on, the memory of the next ones is on its way.
template <class One>
Applied Directory::ForEach(std::span<const uint64_t> keys, const One& one) {
  std::array<uint64_t, kAhead> hashes;
  const auto prepare = [&](size_t i) {
    const uint64_t hash = table_.HashOf(keys[i]);
    hashes[i % kAhead] = hash;
    table_.Prefetch(hash);
  };
  Applied applied;
  size_t done = 0;
  try {
    for (size_t i = 0; i < std::min<size_t>(kAhead, keys.size()); ++i) prepare(i);
    for (; done < keys.size(); ++done) {
      const uint64_t hash = hashes[done % kAhead];
      if (done + kAhead < keys.size()) prepare(done + kAhead);
      one(keys[done], hash, &applied);
    }
  } catch (const std::bad_alloc&) {
    applied.refused += keys.size() - done;
  }
  return applied;
}

Applied Directory::Add(PeerId peer, std::span<const uint64_t> keys) {
  const uint32_t holder = HolderOf(peer);
  uint64_t digest = 0;
  const Applied applied = ForEach(keys, [&](uint64_t key, uint64_t hash, Applied* to) {
    uint32_t* word = table_.FindOrInsert(hash);
    if (word == nullptr) {
      ++to->refused;
      return;
    }
    const HolderSet before = *word;
    const HolderSet after = sets_.With(before, holder);
    const bool changed = after != before;
    *word = after;
    digest += changed ? DigestOf(key) : 0;
    to->changed += changed;
    to->redundant += !changed;
  });
  holders_[holder].blocks += applied.changed;
  holders_[holder].digest += digest;
  holder_blocks_ += applied.changed;
  return applied;
}

Applied Directory::Remove(PeerId peer, std::span<const uint64_t> keys) {
  const uint32_t holder = HolderOf(peer);
  uint64_t digest = 0;
  const Applied applied = ForEach(keys, [&](uint64_t key, uint64_t hash, Applied* to) {
    uint32_t* word = table_.Find(hash);
    const HolderSet before = word == nullptr ? kNoHolder : *word;
    const HolderSet after = sets_.Without(before, holder);
    if (after == before) {
      ++to->redundant;
      return;
    }
    *word = after;
    if (after == kNoHolder) table_.Erase(hash, word);
    digest += DigestOf(key);
    ++to->changed;
  });
  holders_[holder].blocks -= applied.changed;
  holders_[holder].digest -= digest;
  holder_blocks_ -= applied.changed;
  return applied;
}

void Directory::RemovePeer(PeerId peer, bool hidden) {
  const auto entry = holder_of_.find(peer);
  if (entry != holder_of_.end()) {
    holders_[entry->second].leaving = true;
    leaving_.push_back(entry->second);
    holder_of_.erase(entry);
  }
  if (hidden) holders_[HolderOf(peer)].hidden = true;
}

void Directory::Show(PeerId peer) {
  holders_[HolderOf(peer)].hidden = false;
}

// One holder after the other, each through the whole table: what a split moves meanwhile, it moves
// to where the sweep has not been.
bool Directory::Sweep(uint64_t places) {
  while (!leaving_.empty()) {
    const uint32_t gone = leaving_.front();
    while (holders_[gone].blocks > 0) {
      if (places == 0) return true;
      const std::optional<uint32_t> looked_at = SweepSegment(gone);
      if (!looked_at) return true;  // no memory now
      places -= std::min<uint64_t>(places, *looked_at);
    }
    holders_[gone] = {};
    free_holders_.push_back(gone);
    leaving_.pop_front();
    sweep_at_ = 0;
  }
  return false;
}

std::optional<uint32_t> Directory::SweepSegment(uint32_t gone) {
  PANDO_CHECK(sweep_at_ < table_.segments()) << "blocks of a peer that left are not found";
  Holder& holder = holders_[gone];
  bool all = true;
  const uint32_t looked_at = table_.VisitSegment(sweep_at_, [&](uint64_t hash, uint32_t* word) {
    const HolderSet before = *word;
    try {
      *word = sets_.Without(before, gone);
    } catch (const std::bad_alloc&) {
      all = false;
    }
    if (*word == before) return;
    --holder.blocks;
    --holder_blocks_;
    holder.digest -= DigestOf(table_.KeyOf(hash));
  });
  if (!all) return std::nullopt;
  ++sweep_at_;
  return looked_at;
}

uint64_t Directory::blocks(PeerId peer) const {
  const Holder* holder = Find(peer);
  return holder == nullptr ? 0 : holder->blocks;
}

uint64_t Directory::digest(PeerId peer) const {
  const Holder* holder = Find(peer);
  return holder == nullptr ? 0 : holder->digest;
}

bool Directory::Holds(PeerId peer, uint64_t key) const {
  const auto entry = holder_of_.find(peer);
  const uint32_t* word = table_.Find(table_.HashOf(key));
  return entry != holder_of_.end() && word != nullptr && sets_.Contains(*word, entry->second);
}

// ---- Lookup
//
//   1. Place    the first block, the one at `from`, some in between, the last      x    x    x    x
//   2. Read     their holders, all at once                                         A    A    B    -
//   3. Refine   where neighbours differ, look closer; again from 2             x  x  x xxx xx xx
//   4. Collect  walk down: who drops out where

void Directory::Lookup(std::span<const uint64_t> keys, uint32_t from,
                       std::vector<PeerDepth>* out) const {
  out->clear();
  keys = keys.first(std::min<size_t>(keys.size(), UINT32_MAX));
  if (from >= keys.size()) return;
  Place(keys, from);
  do {
    Read(keys);
  } while (Refine());
  Collect(from, out);
}

void Directory::Place(std::span<const uint64_t> keys, uint32_t from) const {
  std::vector<Probe>& probes = scratch_.probes;
  probes.clear();
  const auto end = static_cast<uint32_t>(keys.size());
  if (from > 0) probes.push_back({0, kNotRead});
  const uint32_t stride = std::max(1u, (end - from) / kFirstProbes);
  for (uint64_t at = from; at + 1 < end; at += stride) {
    probes.push_back({static_cast<uint32_t>(at), kNotRead});
  }
  probes.push_back({end - 1, kNotRead});
}

void Directory::Read(std::span<const uint64_t> keys) const {
  for (const Probe& probe : scratch_.probes) {
    if (probe.set == kNotRead) table_.Prefetch(table_.HashOf(keys[probe.at]));
  }
  for (Probe& probe : scratch_.probes) {
    if (probe.set != kNotRead) continue;
    const uint32_t* word = table_.Find(table_.HashOf(keys[probe.at]));
    probe.set = word == nullptr ? kNoHolder : *word;
  }
}

// False: nothing more has to be read.
bool Directory::Refine() const {
  std::vector<Probe>& finer = scratch_.finer;
  finer.clear();
  bool more = false;
  for (size_t i = 0; i < scratch_.probes.size(); ++i) {
    const Probe probe = scratch_.probes[i];
    finer.push_back(probe);
    if (probe.set == kNoHolder || i + 1 == scratch_.probes.size()) break;  // nobody is deeper
    const Probe next = scratch_.probes[i + 1];
    if (next.set == probe.set) continue;
    const uint32_t between = next.at - probe.at - 1;
    const uint32_t added = std::min(between, kFinerProbes);
    for (uint32_t k = 1; k <= added; ++k) {
      finer.push_back({probe.at + (between + 1) * k / (added + 1), kNotRead});
      more = true;
    }
  }
  std::swap(scratch_.probes, finer);
  return more;
}

void Directory::Collect(uint32_t from, std::vector<PeerDepth>* out) const {
  const std::vector<Probe>& probes = scratch_.probes;
  std::vector<uint32_t>&alive = scratch_.alive, &still = scratch_.still;
  alive.clear();
  for (const uint32_t holder : sets_.Members(probes[0].set)) {
    if (Counts(holder)) alive.push_back(holder);
  }
  for (size_t i = 1; i < probes.size() && !alive.empty(); ++i) {
    if (probes[i].set == probes[i - 1].set) continue;
    const std::span<const uint32_t> here = sets_.Members(probes[i].set);
    const uint32_t depth = probes[i - 1].at + 1;
    still.clear();
    auto at = here.begin();
    for (const uint32_t holder : alive) {
      at = std::lower_bound(at, here.end(), holder);
      if (at != here.end() && *at == holder) {
        still.push_back(holder);
      } else if (depth > from) {
        out->push_back({holders_[holder].peer, depth});
      }
    }
    std::swap(alive, still);
  }
  for (const uint32_t holder : alive) {
    out->push_back({holders_[holder].peer, probes.back().at + 1});
  }
  std::ranges::sort(*out, [](const PeerDepth& a, const PeerDepth& b) {
    return a.depth != b.depth ? a.depth > b.depth : a.peer < b.peer;
  });
}

Bytes Directory::memory() const {
  return Bytes(table_.bytes() + sets_.bytes() + holders_.capacity() * sizeof(Holder) +
               free_holders_.capacity() * sizeof(uint32_t) +
               holder_of_.capacity() * (sizeof(std::pair<PeerId, uint32_t>) + 1) +
               leaving_.size() * sizeof(uint32_t));
}

}  // namespace pando
