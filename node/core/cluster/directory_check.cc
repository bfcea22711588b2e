#include <vector>

#include "node/core/cluster/directory.h"

namespace pando {

std::string Directory::CheckInvariants() const {
  if (std::string broken = table_.CheckInvariants(); !broken.empty()) return broken;
  if (std::string broken = sets_.CheckInvariants(); !broken.empty()) return broken;
  std::vector<uint64_t> blocks(holders_.size()), digests(holders_.size());
  std::vector<uint32_t> refs(sets_.ids());
  uint64_t total = 0;
  table_.ForEach([&](uint64_t hash, uint32_t set) {
    if (HolderSets::IsMany(set)) ++refs[HolderSets::IdOf(set)];
    for (const uint32_t holder : sets_.Members(set)) {
      ++blocks[holder];
      ++total;
      digests[holder] += DigestOf(table_.KeyOf(hash));
    }
  });
  if (total != holder_blocks_) return "holder-blocks are miscounted";
  for (uint32_t id = 0; id < sets_.ids(); ++id) {
    if (refs[id] != sets_.refs(id)) return "references of set " + std::to_string(id);
  }
  for (size_t holder = 0; holder < holders_.size(); ++holder) {
    const std::string name = "holder " + std::to_string(holder);
    if (blocks[holder] != holders_[holder].blocks) return name + " has other blocks than counted";
    if (digests[holder] != holders_[holder].digest) return name + " has another digest";
    if (!holders_[holder].used && blocks[holder] > 0) return name + " is nobody's and has blocks";
  }
  return {};
}

}  // namespace pando
