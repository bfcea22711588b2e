#include "client/python/kv_layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "client/limits.h"
#include "transfer/memory/page_copy.h"

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

bool KvLayout::SelfTest(uint64_t from, uint64_t to) const {
  std::vector<std::span<std::byte>> sources, targets;
  Pieces(from, &sources);
  Pieces(to, &targets);
  uint64_t next = 1;
  for (const std::span<std::byte> piece : sources) {
    for (std::byte& byte : piece) {
      next = next * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX
      byte = static_cast<std::byte>(next >> 56);
    }
  }
  for (const std::span<std::byte> piece : targets) std::ranges::fill(piece, std::byte{0});
  std::vector<std::byte> page(page_bytes_);
  const std::vector<std::span<const std::byte>> readable(sources.begin(), sources.end());
  const std::optional<uint64_t> stored = GatherToPage(readable, page);
  const std::optional<uint64_t> loaded = ScatterFromPage(page, targets);
  if (!stored || stored != loaded || *stored != PageChecksum(page)) return false;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!std::ranges::equal(sources[i], targets[i])) return false;
  }
  return true;
}

}  // namespace pando::python
