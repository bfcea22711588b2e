// Copies between an engine's pieces (its layers' K and V of one block) and one page, with the
// page's checksum.
//
//   store   pieces ──gather──► page      checksum over exactly the bytes that were stored
//   load    page ──scatter──► pieces     checksum over exactly the bytes that were loaded
//
// The bytes go 4 KiB chunk by chunk of the *page*: each chunk is read once, hashed while it is in
// L1, and written with non-temporal stores; a store ends with a fence, so that whoever learns of
// the checksum sees the bytes. Source of the formula: ARCHITECTURE.md, "page checksum" (formula 1).
// Stateless; any thread. Nothing is allocated.
#ifndef PANDO_TRANSFER_MEMORY_PAGE_COPY_H_
#define PANDO_TRANSFER_MEMORY_PAGE_COPY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pando {

inline constexpr size_t kChecksumChunk = 4096;

// XXH3-64 (seed 0) over the little-endian XXH3-64 values of each 4 KiB chunk in order; the last
// chunk may be short. At most 8 MiB. An empty page is the hash of nothing.
uint64_t PageChecksum(std::span<const std::byte> page);

// A running copy can be told to stop; it leaves at the next chunk.
struct CopyControl {
  std::atomic<bool> stop{false};
};

// Copies the pieces, in order, to `page`; their sizes sum to page.size() (else nullopt and nothing
// is written). Returns the checksum, or nullopt if `control` stopped it (then the page holds
// rubbish).
std::optional<uint64_t> GatherToPage(std::span<const std::span<const std::byte>> pieces,
                                     std::span<std::byte> page,
                                     const CopyControl* control = nullptr);

// Copies `page` to the pieces, in order; their sizes sum to page.size(). Returns the checksum of
// what was copied; the caller compares it. nullopt as above (then the pieces hold rubbish).
std::optional<uint64_t> ScatterFromPage(std::span<const std::byte> page,
                                        std::span<const std::span<std::byte>> pieces,
                                        const CopyControl* control = nullptr);

}  // namespace pando

#endif  // PANDO_TRANSFER_MEMORY_PAGE_COPY_H_
