#include "transfer/process/extent_map.h"

#include <iterator>

namespace pando::transfer {

void ExtentMap::Add(std::span<std::byte> extent) {
  by_start_.emplace(extent.data(), static_cast<uint32_t>(extents_.size()));
  extents_.push_back(extent);
}

std::optional<PagePlace> ExtentMap::PlaceOf(std::span<const std::byte> page) const {
  if (page.empty()) return PagePlace{};  // asked for by mistake, refused by its owner
  const auto after = by_start_.upper_bound(page.data());
  if (after == by_start_.begin()) return std::nullopt;
  const auto& [start, number] = *std::prev(after);
  const auto offset = static_cast<size_t>(page.data() - start);
  const size_t extent_bytes = extents_[number].size();
  if (offset > extent_bytes || page.size() > extent_bytes - offset) return std::nullopt;
  return PagePlace{number, static_cast<uint32_t>(offset), static_cast<uint32_t>(page.size())};
}

std::optional<std::span<std::byte>> ExtentMap::At(const PagePlace& place) const {
  if (place.bytes == 0) return std::span<std::byte>();
  if (place.extent >= extents_.size()) return std::nullopt;
  const std::span<std::byte> extent = extents_[place.extent];
  if (place.offset > extent.size() || place.bytes > extent.size() - place.offset) {
    return std::nullopt;
  }
  return extent.subspan(place.offset, place.bytes);
}

}  // namespace pando::transfer
