#include "transfer/memory/page_copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "radix/base/check.h"
#include "transfer/memory/chunk_kernel.h"
#include "transfer/memory/stream_copy.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // Debian's plain XXH3_64bits is its SSE2 build: 40 % slower
#else
#include <xxhash.h>
#endif

namespace pando {
namespace {

constexpr size_t kPageBytesMax = 8u << 20;
static_assert(std::endian::native == std::endian::little,
              "the formula hashes little-endian values");

// Collects the hashes of a page's chunks.
class PageHash {
 public:
  void Add(const std::byte* chunk, size_t size) { Add(XXH3_64bits(chunk, size)); }
  void Add(uint64_t chunk_hash) { values_[count_++] = chunk_hash; }
  uint64_t Finish() const { return XXH3_64bits(values_.data(), count_ * sizeof(uint64_t)); }

 private:
  std::array<uint64_t, kPageBytesMax / kChecksumChunk> values_;  // the first count_ are set
  size_t count_ = 0;
};

// Walks over pieces in order: Next(n) is the next part, at most n bytes and never across a border.
template <class Byte>
class PieceCursor {
 public:
  explicit PieceCursor(std::span<const std::span<Byte>> pieces) : pieces_(pieces) {}

  // `bytes` > 0 are left in all.
  std::span<Byte> Next(size_t bytes) {
    while (used_ == pieces_.front().size()) {
      pieces_ = pieces_.subspan(1);
      used_ = 0;
    }
    const std::span<Byte> piece = pieces_.front();
    const std::span<Byte> part = piece.subspan(used_, std::min(bytes, piece.size() - used_));
    used_ += part.size();
    return part;
  }

  // How much comes next without a border; `bytes` > 0 are left in all.
  size_t Contiguous() {
    const std::span<Byte> rest = Next(SIZE_MAX);
    used_ -= rest.size();
    return rest.size();
  }

  // Where it goes on; null at the end.
  const std::byte* Peek() const {
    size_t used = used_;
    for (const std::span<Byte>& piece : pieces_) {
      if (used < piece.size()) return piece.data() + used;
      used = 0;
    }
    return nullptr;
  }

  // True if the next chunk consists of whole lines, at addresses that are multiples of `align`.
  bool ChunkInLines(size_t align) const {
    PieceCursor ahead = *this;
    for (size_t left = kChecksumChunk; left != 0;) {
      const std::span<Byte> part = ahead.Next(left);
      const auto address = reinterpret_cast<uintptr_t>(part.data());
      if (part.size() % kLineBytes != 0 || address % align != 0) return false;
      left -= part.size();
    }
    return true;
  }

 private:
  std::span<const std::span<Byte>> pieces_;
  size_t used_ = 0;  // of the first piece
};

// True if the pieces fill `bytes` exactly, and that is a page.
template <class Byte>
bool Fill(std::span<const std::span<Byte>> pieces, size_t bytes) {
  size_t sum = 0;
  for (const std::span<Byte>& piece : pieces) {
    if (piece.size() > bytes - sum) return false;
    sum += piece.size();
  }
  return sum == bytes && bytes <= kPageBytesMax;
}

bool Stopped(const CopyControl* control) {
  return control != nullptr && control->stop.load(std::memory_order_relaxed);
}

// A whole chunk of whole lines, in one pass.
template <class From, class To>
uint64_t CopyLines(PieceCursor<From>* from, PieceCursor<To>* to) {
  ChunkKernel kernel;
  for (size_t left = kChecksumChunk; left != 0;) {
    const size_t size = std::min({left, from->Contiguous(), to->Contiguous()});
    const std::byte* source = from->Next(size).data();
    const std::byte* next = from->Peek();
    kernel.Lines(to->Next(size).data(), source, size / kLineBytes, next ? next : source);
    left -= size;
  }
  return kernel.Finish();
}

// Any chunk, through a buffer in L1. The buffer is what is hashed and what is stored, so that the
// hash is of the stored bytes even if somebody writes to the source meanwhile.
template <class From, class To>
uint64_t CopyStaged(PieceCursor<From>* from, PieceCursor<To>* to, size_t size,
                    StreamCopyFn stream) {
  alignas(kLineBytes) std::array<std::byte, kChecksumChunk> buffer;
  for (size_t at = 0; at < size;) {
    const auto part = from->Next(size - at);
    std::memcpy(buffer.data() + at, part.data(), part.size());
    at += part.size();
  }
  for (size_t at = 0; at < size;) {
    const auto part = to->Next(size - at);
    stream(part.data(), buffer.data() + at, part.size());
    at += part.size();
  }
  return XXH3_64bits(buffer.data(), size);
}

// Moves `bytes` from one list of pieces to another, chunk by chunk.
template <class From, class To>
std::optional<uint64_t> CopyChunks(PieceCursor<From> from, PieceCursor<To> to, size_t bytes,
                                   const CopyControl* control) {
  const StreamCopyFn stream = BestStreamCopy();
  const bool kernel = ChunkKernel::Usable();
  PageHash hash;
  for (size_t left = bytes; left != 0;) {
    if (Stopped(control)) {
      StreamFence();
      return std::nullopt;
    }
    const size_t size = std::min(left, kChecksumChunk);
    const bool in_lines =
        kernel && size == kChecksumChunk && from.ChunkInLines(1) && to.ChunkInLines(kLineBytes);
    hash.Add(in_lines ? CopyLines(&from, &to) : CopyStaged(&from, &to, size, stream));
    left -= size;
  }
  StreamFence();
  return hash.Finish();
}

}  // namespace

uint64_t PageChecksum(std::span<const std::byte> page) {
  PANDO_CHECK(page.size() <= kPageBytesMax) << "a page of " << page.size() << " bytes";
  PageHash hash;
  for (size_t at = 0; at < page.size(); at += kChecksumChunk) {
    hash.Add(page.data() + at, std::min(kChecksumChunk, page.size() - at));
  }
  return hash.Finish();
}

std::optional<uint64_t> GatherToPage(std::span<const std::span<const std::byte>> pieces,
                                     std::span<std::byte> page, const CopyControl* control) {
  if (!Fill(pieces, page.size())) return std::nullopt;
  const std::array<std::span<std::byte>, 1> whole = {page};
  return CopyChunks(PieceCursor<const std::byte>(pieces), PieceCursor<std::byte>(whole),
                    page.size(), control);
}

std::optional<uint64_t> ScatterFromPage(std::span<const std::byte> page,
                                        std::span<const std::span<std::byte>> pieces,
                                        const CopyControl* control) {
  if (!Fill(pieces, page.size())) return std::nullopt;
  const std::array<std::span<const std::byte>, 1> whole = {page};
  return CopyChunks(PieceCursor<const std::byte>(whole), PieceCursor<std::byte>(pieces),
                    page.size(), control);
}

}  // namespace pando
