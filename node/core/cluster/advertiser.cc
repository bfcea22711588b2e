#include "node/core/cluster/advertiser.h"

#include <new>

#include "radix/base/check.h"

namespace pando {
namespace {

constexpr uint64_t kBytesPerBlock = sizeof(uint64_t);  // of advertised state
constexpr uint8_t kCandidate = 1, kLeaf = 2;
// A block takes another's place if it is a doubling hotter: so many classes.
constexpr uint32_t kHotterBy = 4;

}  // namespace

Advertiser::Advertiser(const Options& options)
    : options_(options),
      budget_blocks_(options.budget.value() / kBytesPerBlock),
      index_(Access{&blocks_}),
      candidates_(LinkOf{&blocks_}, kCandidate),
      leaves_(LinkOf{&blocks_}, kLeaf) {
  PANDO_CHECK(options.half_life >= kHeatDoubling && options.keys_per_piece > 0)
      << "half life " << options.half_life << ", keys a piece " << options.keys_per_piece;
}

Advertiser::~Advertiser() = default;

// ---- Blocks

uint32_t Advertiser::Find(uint64_t key) const {
  return index_.Find(key, [](uint32_t) { return true; });
}

uint32_t Advertiser::Make(uint64_t key) {
  uint32_t id = free_;
  if (id != kNoNode) {
    free_ = blocks_[id].older;
  } else {
    if (!blocks_.EnsureSize(uint64_t{used_} + 1)) throw std::bad_alloc();
    id = used_++;
  }
  blocks_[id] = {};
  blocks_[id].key = key;
  index_.Insert(id);
  return id;
}

void Advertiser::Link(uint32_t id, uint32_t parent) {
  Block& block = blocks_[id];
  uint32_t& youngest = parent == kNoNode ? first_root_ : blocks_[parent].child;
  block.parent = parent;
  block.older = youngest;
  block.younger = kNoNode;
  if (youngest != kNoNode) blocks_[youngest].younger = id;
  youngest = id;
}

void Advertiser::Unlink(uint32_t id) {
  Block& block = blocks_[id];
  if (block.older != kNoNode) blocks_[block.older].younger = block.younger;
  if (block.younger != kNoNode) {
    blocks_[block.younger].older = block.older;
  } else {
    (block.parent == kNoNode ? first_root_ : blocks_[block.parent].child) = block.older;
  }
  block.parent = block.older = block.younger = kNoNode;
}

uint32_t Advertiser::TimeOf(Nanos now) const {
  return static_cast<uint32_t>(std::max<Nanos>(now, 0) / (options_.half_life / kHeatDoubling));
}

void Advertiser::SetHeat(uint32_t id, uint32_t heat) {
  HeatLink& link = blocks_[id].link;
  const uint8_t in = link.in;
  using Lists = HeatLists<LinkOf>;
  if (in == 0 || Lists::ClassOf(heat) == Lists::ClassOf(link.heat)) {
    link.heat = heat;
    return;
  }
  Lists& lists = in == kCandidate ? candidates_ : leaves_;
  lists.Remove(id);
  link.heat = heat;
  lists.Insert(id);
}

// No block is hotter than the one above it: so who is chosen by heat is chosen from the root.
void Advertiser::WarmPath(uint32_t id, uint32_t time) {
  for (; id != kNoNode && blocks_[id].link.heat < time; id = blocks_[id].parent) SetHeat(id, time);
}

void Advertiser::Appeared(std::optional<uint64_t> parent, std::span<const uint64_t> keys, Tier tier,
                          Nanos now) {
  uint32_t above = kNoNode;
  if (parent) {
    above = Find(*parent);
    if (above == kNoNode || blocks_[above].tiers == 0) {
      counters_.without_parent += keys.size();
      return;
    }
  }
  const uint32_t time = TimeOf(now);
  WarmPath(above, time);
  for (size_t i = 0; i < keys.size(); ++i) {
    uint32_t id = Find(keys[i]);
    if (id == kNoNode) id = Make(keys[i]);
    Block& block = blocks_[id];
    if (block.tiers == 0) {
      Link(id, above);
      ++present_;
      block.tiers = static_cast<uint8_t>(tier);
      block.link.heat = time;
      Relist(id);
    } else if (block.parent == above) {
      block.tiers |= static_cast<uint8_t>(tier);
      WarmPath(id, time);
    } else {  // another block of the same name: the first one stays
      counters_.unknown += keys.size() - i;
      return;
    }
    above = id;
  }
}

void Advertiser::Vanished(std::span<const uint64_t> keys, Tier tier) {
  for (const uint64_t key : keys) {
    const uint32_t id = Find(key);
    if (id == kNoNode || blocks_[id].tiers == 0) {
      ++counters_.unknown;
      continue;
    }
    blocks_[id].tiers &= static_cast<uint8_t>(~static_cast<uint8_t>(tier));
    if (blocks_[id].tiers == 0) Forget(id);
  }
}

// It and all below it, from the leaves up. What peers were told of stays known until the next flush
// has told them otherwise.
void Advertiser::Forget(uint32_t id) {
  for (uint32_t at = id;;) {
    while (blocks_[at].child != kNoNode) at = blocks_[at].child;
    Block& block = blocks_[at];
    const uint32_t above = block.parent;
    block.tiers = 0;
    if (block.chosen) Unchoose(at);
    Relist(at);
    Unlink(at);
    --present_;
    if (!block.changed) {
      index_.Remove(at);
      block.older = free_;
      free_ = at;
    }
    if (at == id) return;
    at = above;
  }
}

void Advertiser::Used(std::span<const uint64_t> keys, Nanos now) {
  const uint32_t time = TimeOf(now);
  uint32_t bound = UINT32_MAX;
  for (const uint64_t key : keys) {
    const uint32_t id = Find(key);
    if (id == kNoNode || blocks_[id].tiers == 0) return;
    if (blocks_[id].parent != kNoNode && bound == UINT32_MAX) WarmPath(blocks_[id].parent, time);
    if (blocks_[id].parent != kNoNode) bound = blocks_[blocks_[id].parent].link.heat;
    SetHeat(id, std::min(bound, Warmer(blocks_[id].link.heat, time)));
  }
}

// ---- What is told

// Puts it into the lists where it belongs, or out of them.
void Advertiser::Relist(uint32_t id) {
  Block& block = blocks_[id];
  uint8_t in = 0;
  if (block.chosen) {
    in = block.chosen_children == 0 ? kLeaf : 0;
  } else if (block.tiers != 0 && (block.parent == kNoNode || blocks_[block.parent].chosen)) {
    in = kCandidate;
  }
  if (block.link.in == in) return;
  if (block.link.in != 0) (block.link.in == kCandidate ? candidates_ : leaves_).Remove(id);
  if (in != 0) (in == kCandidate ? candidates_ : leaves_).Insert(id);
}

void Advertiser::Mark(uint32_t id) {
  if (blocks_[id].changed) return;
  blocks_[id].changed = true;
  changed_.push_back(id);
}

void Advertiser::Choose(uint32_t id) {
  Block& block = blocks_[id];
  block.chosen = true;
  ++chosen_;
  Mark(id);
  Relist(id);
  if (block.parent != kNoNode) {
    ++blocks_[block.parent].chosen_children;
    Relist(block.parent);
  }
  for (uint32_t below = block.child; below != kNoNode; below = blocks_[below].older) Relist(below);
}

void Advertiser::Unchoose(uint32_t id) {
  Block& block = blocks_[id];
  PANDO_CHECK(block.chosen_children == 0)
      << "a block is told no more and " << block.chosen_children << " below it are";
  block.chosen = false;
  --chosen_;
  Mark(id);
  Relist(id);
  if (block.parent != kNoNode) {
    --blocks_[block.parent].chosen_children;
    Relist(block.parent);
  }
  for (uint32_t below = block.child; below != kNoNode; below = blocks_[below].older) Relist(below);
}

void Advertiser::Rebalance() {
  using Lists = HeatLists<LinkOf>;
  for (uint32_t moves = options_.moves_per_flush; moves > 0 && !candidates_.empty(); --moves) {
    const uint32_t hot = candidates_.Hottest();
    if (chosen_ >= budget_blocks_) {
      if (leaves_.empty()) return;
      const uint32_t cold = leaves_.Coldest();
      const uint32_t class_of_hot = Lists::ClassOf(blocks_[hot].link.heat);
      if (class_of_hot < Lists::ClassOf(blocks_[cold].link.heat) + kHotterBy) return;
      PANDO_CHECK(blocks_[hot].parent != cold) << "a block is hotter than the one above it";
      Unchoose(cold);
    }
    Choose(hot);
  }
}

void Advertiser::PrefillBegan(std::span<const uint64_t> keys) {
  for (const uint64_t key : keys) {
    if (++prefills_[key].count == 1) prefills_changed_.push_back(key);
  }
}

void Advertiser::PrefillEnded(std::span<const uint64_t> keys) {
  for (const uint64_t key : keys) {
    const auto found = prefills_.find(key);
    if (found == prefills_.end() || found->second.count == 0) {
      ++counters_.unknown;
    } else if (--found->second.count == 0) {
      prefills_changed_.push_back(key);
    }
  }
}

bool Advertiser::Tells(uint64_t key) const {
  const uint32_t id = Find(key);
  return id != kNoNode && blocks_[id].told;
}

Advertiser::Counters Advertiser::counters() const {
  Counters counters = counters_;
  counters.blocks = present_;
  counters.told = told_.keys;
  return counters;
}

Bytes Advertiser::memory() const {
  return Bytes(blocks_.bytes() + index_.bytes() + backlog_bytes_ +
               (changed_.capacity() * sizeof(uint32_t)) +
               (prefills_changed_.capacity() * sizeof(uint64_t)) +
               prefills_.size() * sizeof(decltype(prefills_)::value_type) +
               subscribers_.size() * sizeof(decltype(subscribers_)::value_type));
}

std::string Advertiser::CheckInvariants() const {
  uint64_t present = 0, chosen = 0, candidates = 0, leaves = 0;
  KeySum told;
  for (uint32_t id = 0; id < used_; ++id) {
    const Block& block = blocks_[id];
    const std::string name = "block " + std::to_string(id);
    if (block.told) told.Add(block.key);
    present += block.tiers != 0;
    chosen += block.chosen;
    candidates += block.link.in == kCandidate;
    leaves += block.link.in == kLeaf;
    if (block.chosen != block.told && !block.changed) return name + " would never be told";
    if (block.tiers == 0) continue;
    uint32_t chosen_children = 0;
    for (uint32_t below = block.child; below != kNoNode; below = blocks_[below].older) {
      if (blocks_[below].parent != id) return name + " has another's child";
      chosen_children += blocks_[below].chosen;
    }
    if (chosen_children != block.chosen_children) return name + " miscounts its children";
    if (block.parent == kNoNode) continue;
    if (block.chosen && !blocks_[block.parent].chosen) return name + " hangs in the air";
    if (block.link.heat > blocks_[block.parent].link.heat) return name + " is hotter than above";
  }
  if (present != present_ || chosen != chosen_) return "blocks are miscounted";
  if (chosen > budget_blocks_) return "more is told than the budget allows";
  if (candidates != candidates_.size() || leaves != leaves_.size()) return "lists are miscounted";
  if (told != told_) return "the digest is not that of what is told";
  return {};
}

}  // namespace pando
