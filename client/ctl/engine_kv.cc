#include "client/ctl/engine_kv.h"

#include <algorithm>

namespace pando::ctl {
namespace {

constexpr uint64_t kPiecesMax = 8;  // four layers, K and V
constexpr uint64_t kSlotsMax = 64;
constexpr uint64_t kMemory = 8ull << 20;  // about; small enough to stay a stand-in

// Sizes of the pieces: equal multiples of 8 (PageBytes' words), the last takes the rest.
std::vector<uint64_t> PieceSizes(uint64_t page_bytes) {
  const uint64_t count = std::clamp<uint64_t>(page_bytes / 8, 1, kPiecesMax);
  std::vector<uint64_t> sizes(count, page_bytes / count / 8 * 8);
  sizes.back() = page_bytes - sizes.front() * (count - 1);
  return sizes;
}

}  // namespace

EngineKv::EngineKv(uint64_t page_bytes)
    : slots_(static_cast<uint32_t>(std::clamp<uint64_t>(kMemory / page_bytes, 1, kSlotsMax))),
      memory_(page_bytes * slots_) {
  const std::vector<uint64_t> sizes = PieceSizes(page_bytes);
  pieces_per_page_ = static_cast<uint32_t>(sizes.size());
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    std::span<std::byte> rest(memory_);
    for (const uint64_t size : sizes) {
      pieces_.push_back(rest.subspan(slot * size, size));
      rest = rest.subspan(slots_ * size);
    }
  }
  const_pieces_.assign(pieces_.begin(), pieces_.end());
}

std::span<const std::span<std::byte>> EngineKv::pieces(uint32_t slot) const {
  return std::span(pieces_).subspan(size_t{slot} * pieces_per_page_, pieces_per_page_);
}

std::span<const std::span<const std::byte>> EngineKv::const_pieces(uint32_t slot) const {
  return std::span(const_pieces_).subspan(size_t{slot} * pieces_per_page_, pieces_per_page_);
}

void EngineKv::Compute(uint32_t slot, const PageBytes& page) {
  uint64_t offset = 0;
  for (const std::span<std::byte> piece : pieces(slot)) {
    page.Fill(offset, piece);
    offset += piece.size();
  }
}

void EngineKv::Spoil(uint32_t slot) {
  for (const std::span<std::byte> piece : pieces(slot)) {
    piece.front() = ~piece.front();
    if (piece.size() > 1) piece.back() = ~piece.back();
  }
}

bool EngineKv::Holds(uint32_t slot, const PageBytes& page) const {
  uint64_t offset = 0;
  for (const std::span<const std::byte> piece : const_pieces(slot)) {
    if (!page.Equal(offset, piece)) return false;
    offset += piece.size();
  }
  return true;
}

}  // namespace pando::ctl
