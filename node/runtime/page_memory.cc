#include "node/runtime/page_memory.h"

#include <utility>

#include "radix/base/check.h"

namespace pando::runtime {

absl::StatusOr<std::span<std::byte>> PageMemory::Add(const HostExtent& extent) {
  absl::StatusOr<MappedExtent> mapped = MappedExtent::Map(extent.fd());
  if (!mapped.ok()) return mapped.status();
  extents_.push_back(*std::move(mapped));
  return extents_.back().bytes();
}

std::span<std::byte> PageMemory::Of(PageId page, Bytes page_bytes) const {
  const uint32_t extent = ExtentOf(page).value();
  PANDO_CHECK(extent < extents_.size()) << "page " << page << " lies in extent " << extent;
  const std::span<std::byte> bytes = extents_[extent].bytes();
  const uint64_t start = IndexInExtent(page) * PageStride(page_bytes).value();
  PANDO_CHECK(start + page_bytes.value() <= bytes.size())
      << "page " << page << " of " << page_bytes.value() << " bytes";
  return bytes.subspan(start, page_bytes.value());
}

}  // namespace pando::runtime
