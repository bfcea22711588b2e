#include "node/core/cluster/holder_sets.h"

#include <algorithm>
#include <new>
#include <vector>

#include "node/core/cluster/mix.h"
#include "radix/base/check.h"

namespace pando {
namespace {

constexpr uint64_t HashOf(uint32_t holder) {
  return DigestOf(uint64_t{holder} + 1);
}

}  // namespace

HolderSets::HolderSets()
    : index_(Access{&records_}), remembered_(std::make_unique<Remembered[]>(kRemembered)) {
  static_assert(kRemembered == 1u << (32 - 22), "Step takes the upper bits");
}

HolderSets::~HolderSets() {
  for (uint32_t id = 0; id < used_; ++id) {  // the pool frees small pieces only
    if (records_[id].members != nullptr) words_.Give(records_[id].members, records_[id].size);
  }
}

bool HolderSets::Contains(HolderSet set, uint32_t holder) const {
  const std::span<const uint32_t> members = Members(set);
  return std::binary_search(members.begin(), members.end(), holder);
}

HolderSet HolderSets::StepAnew(HolderSet set, uint32_t holder, bool remove) {
  const std::span<const uint32_t> before = Members(set);
  const auto at = std::lower_bound(before.begin(), before.end(), holder);
  const bool there = at != before.end() && *at == holder;
  HolderSet to = set;
  if (there == remove) {
    std::vector<uint32_t> after(before.begin(), at);
    if (!remove) after.push_back(holder);
    after.insert(after.end(), at + (remove ? 1 : 0), before.end());
    const uint64_t hash = IsMany(set) ? records_[IdOf(set)].hash : HashOf(set);
    to = after.size() == 1 ? after[0]
                           : Intern(after, remove ? hash - HashOf(holder) : hash + HashOf(holder));
  }
  const uint32_t step = holder << 1 | (remove ? 1 : 0);
  const uint32_t from_lives = LivesOf(set);
  Move(set, to);
  remembered_[(set * 0x9e3779b1u ^ step * 0x85ebca6bu) >> 22] = {set, to, step, from_lives,
                                                                 LivesOf(to)};
  return to;
}

// The word of these two or more, without a reference yet.
HolderSet HolderSets::Intern(std::span<const uint32_t> members, uint64_t hash) {
  const uint32_t known = index_.Find(hash, [&](uint32_t id) {
    return std::ranges::equal(std::span(records_[id].members, records_[id].size), members);
  });
  if (known != kNoNode) return kMany | known;
  uint32_t* copy = words_.Take(members.size());
  if (copy == nullptr) throw std::bad_alloc();
  std::ranges::copy(members, copy);
  uint32_t id = free_;
  if (id != kNoNode) {
    free_ = records_[id].next;
  } else {
    if (!records_.EnsureSize(uint64_t{used_} + 1)) {
      words_.Give(copy, members.size());
      throw std::bad_alloc();
    }
    id = used_++;
  }
  Record& record = records_[id];
  record.hash = hash;
  record.members = copy;
  record.size = static_cast<uint32_t>(members.size());
  record.refs = 0;
  index_.Insert(id);
  return kMany | id;
}

void HolderSets::Forget(uint32_t id) {
  index_.Remove(id);
  Record& record = records_[id];
  words_.Give(record.members, record.size);
  record.members = nullptr;
  record.size = 0;
  ++record.lives;
  record.next = free_;
  free_ = id;
}

uint64_t HolderSets::bytes() const {
  return records_.bytes() + index_.bytes() + words_.bytes() + kRemembered * sizeof(Remembered);
}

std::string HolderSets::CheckInvariants() const {
  uint64_t live = 0;
  for (uint32_t id = 0; id < used_; ++id) {
    const Record& record = records_[id];
    if (record.refs == 0) continue;
    ++live;
    const std::string name = "holder set " + std::to_string(id);
    if (record.size < 2) return name + " has fewer than two members";
    uint64_t hash = 0;
    for (uint32_t i = 0; i < record.size; ++i) {
      hash += HashOf(record.members[i]);
      if (i > 0 && record.members[i] <= record.members[i - 1]) return name + " is not in order";
    }
    if (hash != record.hash) return name + " has another hash";
    const uint32_t found = index_.Find(hash, [&](uint32_t other) {
      return std::ranges::equal(std::span(records_[other].members, records_[other].size),
                                std::span(record.members, record.size));
    });
    if (found != id) return name + " is there twice or not at all";
  }
  if (live != index_.size()) return "sets that nobody holds are kept";
  return {};
}

}  // namespace pando
