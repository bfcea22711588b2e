// What Directory should say, the plain way.
#ifndef PANDO_TESTS_NODE_CORE_CLUSTER_NAIVE_DIRECTORY_H_
#define PANDO_TESTS_NODE_CORE_CLUSTER_NAIVE_DIRECTORY_H_

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "node/core/cluster/directory.h"

namespace pando {

class NaiveDirectory {
 public:
  // The blocks that changed.
  uint64_t Add(uint32_t peer, std::span<const uint64_t> keys) {
    uint64_t changed = 0;
    for (const uint64_t key : keys) changed += held_[peer].insert(key).second ? 1 : 0;
    return changed;
  }
  uint64_t Remove(uint32_t peer, std::span<const uint64_t> keys) {
    uint64_t changed = 0;
    for (const uint64_t key : keys) changed += held_[peer].erase(key);
    return changed;
  }
  void RemovePeer(uint32_t peer) { held_.erase(peer); }
  const std::set<uint64_t>& held(uint32_t peer) { return held_[peer]; }
  const std::map<uint32_t, std::set<uint64_t>>& all() const { return held_; }

  uint64_t digest(uint32_t peer) {
    uint64_t sum = 0;
    for (const uint64_t key : held_[peer]) sum += DigestOf(key);
    return sum;
  }
  uint64_t unique_blocks() const {
    std::set<uint64_t> keys;
    for (const auto& [peer, held] : held_) keys.insert(held.begin(), held.end());
    return keys.size();
  }
  std::vector<PeerDepth> Lookup(std::span<const uint64_t> keys, uint32_t from) const {
    std::vector<PeerDepth> out;
    for (const auto& [peer, held] : held_) {
      uint32_t depth = 0;
      while (depth < keys.size() && held.contains(keys[depth])) ++depth;
      if (depth > from) out.push_back({PeerId(peer), depth});
    }
    std::ranges::stable_sort(out, std::greater(), &PeerDepth::depth);
    return out;
  }

 private:
  std::map<uint32_t, std::set<uint64_t>> held_;
};

}  // namespace pando

#endif  // PANDO_TESTS_NODE_CORE_CLUSTER_NAIVE_DIRECTORY_H_
