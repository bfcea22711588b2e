#include "client/python/kv_layout.h"

#include <utility>

#include "client/limits.h"

namespace pando::python {

std::string KvLayout::Check(const std::vector<KvPiece>& pieces, uint64_t blocks) {
  if (blocks == 0 || pieces.empty()) return "no blocks or no pieces found: expected one at least";
  uint64_t page = 0;
  for (const KvPiece& piece : pieces) {
    if (piece.base == 0 || piece.bytes == 0) return "a piece without address or size found";
    if (piece.stride < piece.bytes && blocks > 1) {
      return "a piece of " + std::to_string(piece.bytes) + " bytes every " +
             std::to_string(piece.stride) + " found: its blocks would overlap";
    }
    if (piece.bytes > client::limits::kPageBytes - page) {
      return "blocks of more than " + std::to_string(client::limits::kPageBytes) +
             " bytes found: choose smaller ones";
    }
    page += piece.bytes;
  }
  return "";
}

KvLayout::KvLayout(std::vector<KvPiece> pieces, uint64_t blocks)
    : pieces_(std::move(pieces)), blocks_(blocks) {
  for (const KvPiece& piece : pieces_) page_bytes_ += piece.bytes;
}

void KvLayout::Pieces(uint64_t block, std::vector<std::span<std::byte>>* out) const {
  out->clear();
  for (const KvPiece& piece : pieces_) {
    auto* at = reinterpret_cast<std::byte*>(piece.base + block * piece.stride);
    out->emplace_back(at, piece.bytes);
  }
}

}  // namespace pando::python
