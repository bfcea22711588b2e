// Where an extent's bytes lie in this process, and which extent a page lies in: the two sides of
// the socket name memory by extent and offset.
//
// Threads: one at a time.
#ifndef PANDO_TRANSFER_PROCESS_EXTENT_MAP_H_
#define PANDO_TRANSFER_PROCESS_EXTENT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace pando::transfer {

struct PagePlace {
  uint32_t extent = 0;
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

class ExtentMap {
 public:
  // The next extent, by number from 0.
  void Add(std::span<std::byte> extent);
  size_t size() const { return extents_.size(); }

  // Nothing: it does not lie whole in one extent.
  std::optional<PagePlace> PlaceOf(std::span<const std::byte> page) const;
  std::optional<std::span<std::byte>> At(const PagePlace& place) const;

 private:
  std::vector<std::span<std::byte>> extents_;
  std::map<const std::byte*, uint32_t> by_start_;
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_PROCESS_EXTENT_MAP_H_
