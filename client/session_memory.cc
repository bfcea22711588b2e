#include "client/session_memory.h"

#include <algorithm>
#include <utility>

#include "radix/base/ids.h"

namespace pando::client {
namespace {

constexpr uint32_t kExtents = 1u << (32 - kPageIndexBits);  // that a page id can name

}  // namespace

SessionMemory::SessionMemory(std::shared_ptr<const ForkGuard> fork)
    : fork_(std::move(fork)), returns_(std::make_shared<Returns>(fork_)) {}

SessionMemory::~SessionMemory() {
  if (fork_->forked()) {
    // The mappings stayed with the parent; what lies at their addresses here is somebody else's.
    for (auto& [id, extent] : extents_) extent.Release();
  }
  extents_.clear();
  unmapped_->store(true, std::memory_order_release);
}

std::string SessionMemory::Map(uint32_t extent, const UniqueFd& fd) {
  const std::string name = "extent " + std::to_string(extent);
  if (extent >= kExtents) return "the node sent " + name + ", which no page can name";
  if (extents_.contains(extent)) return "the node sent " + name + " twice";
  if (!fd.valid()) return "the node sent " + name + " without its file descriptor";
  absl::StatusOr<MappedExtent> mapped = MappedExtent::Map(fd.get());
  if (!mapped.ok()) return name + ": " + std::string(mapped.status().message());
  untouched_.push_back(mapped->bytes());
  extents_.emplace(extent, *std::move(mapped));
  return "";
}

bool SessionMemory::Prefault(size_t bytes) {
  if (untouched_.empty()) return false;
  std::span<std::byte>& rest = untouched_.front();
  const size_t step = std::min(rest.size(), bytes);
  pando::Prefault(rest.first(step));
  rest = rest.subspan(step);
  if (rest.empty()) untouched_.pop_front();
  return !untouched_.empty();
}

std::span<std::byte> SessionMemory::Page(uint32_t page, uint64_t page_bytes) const {
  const auto extent = extents_.find(ExtentOf(PageId(page)).value());
  if (extent == extents_.end()) return {};
  const uint64_t offset =
      IndexInExtent(PageId(page)) * PageStride(Bytes(page_bytes)).value();  // below 2^37
  const std::span<std::byte> bytes = extent->second.bytes();
  if (page_bytes > bytes.size() || offset > bytes.size() - page_bytes) return {};
  return bytes.subspan(offset, page_bytes);
}

}  // namespace pando::client
