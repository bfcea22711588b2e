// Items in lists by how hot they are: put in, taken out and found (hottest, coldest) at once.
//
//   class 212 ─► a ─ b      newest first; a class is a quarter of a doubling of the heat, so there
//   class 219 ─► c          are as many classes as the heats are apart, never more than a few
//   hundred
//
// `LinkOf(item)` says where an item's HeatLink is; an item is in at most one set of lists. Threads:
// owner thread only.
#ifndef PANDO_NODE_CORE_CLUSTER_HEAT_LISTS_H_
#define PANDO_NODE_CORE_CLUSTER_HEAT_LISTS_H_

#include <absl/container/btree_map.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "radix/base/check.h"
#include "radix/pool/linear_index.h"

namespace pando {

// Sixteenths of a doubling.
inline constexpr uint32_t kHeatDoubling = 16;

// `heat` is max(what it was, time) plus log2(1 + 2^-|difference|): one more use at `time`, where
// both count in sixteenths of a half-life.
constexpr uint32_t Warmer(uint32_t heat, uint32_t time) {
  constexpr uint32_t kFar = 80;  // beyond, the smaller adds less than half a sixteenth
  // 16 * log2(1 + 2^(-d/16)), rounded, for d = 0, 4, 8, ... 76.
  constexpr std::array<uint8_t, kFar / 4> kGain = {16, 14, 12, 11, 9, 8, 7, 6, 5, 4,
                                                   4,  3,  3,  2,  2, 2, 1, 1, 1, 1};
  const uint32_t difference = std::max(heat, time) - std::min(heat, time);
  return std::max(heat, time) + (difference < kFar ? kGain[difference / 4] : 0);
}

struct HeatLink {
  uint32_t older = kNoNode, newer = kNoNode;
  uint32_t heat = 0;
  uint8_t in = 0;  // the lists it is in, as they were named; 0: none
};

template <class LinkOf>
class HeatLists {
 public:
  // `name` > 0 marks the links of those that are in.
  HeatLists(LinkOf link_of, uint8_t name) : link_of_(link_of), name_(name) {}

  static constexpr uint32_t ClassOf(uint32_t heat) { return heat / (kHeatDoubling / 4); }

  void Insert(uint32_t item) {
    HeatLink& link = link_of_(item);
    PANDO_CHECK(link.in == 0) << "item " << item << " is in list " << +link.in << " already";
    uint32_t& newest = classes_.try_emplace(ClassOf(link.heat), kNoNode).first->second;
    link.in = name_;
    link.newer = kNoNode;
    link.older = newest;
    if (newest != kNoNode) link_of_(newest).newer = item;
    newest = item;
    ++size_;
  }
  void Remove(uint32_t item) {
    HeatLink& link = link_of_(item);
    if (link.older != kNoNode) link_of_(link.older).newer = link.newer;
    if (link.newer != kNoNode) {
      link_of_(link.newer).older = link.older;
    } else {
      const auto newest = classes_.find(ClassOf(link.heat));
      newest->second = link.older;
      if (link.older == kNoNode) classes_.erase(newest);
    }
    link.in = 0;
    --size_;
  }

  bool empty() const { return size_ == 0; }
  uint64_t size() const { return size_; }
  uint32_t Hottest() const { return classes_.rbegin()->second; }
  uint32_t Coldest() const { return classes_.begin()->second; }

 private:
  LinkOf link_of_;
  const uint8_t name_;
  absl::btree_map<uint32_t, uint32_t> classes_;  // class -> the newest of it
  uint64_t size_ = 0;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_HEAT_LISTS_H_
