// What a page must hold, from first principles: its bytes follow from *all tokens up to and with
// its block*, the shard and the block size.
//
//   tokens   t0 t1 ... t15 | t16 ... t31 | ...
//   chain            c0 ─────────► c1 ──────► ...     every token is mixed into a 64-bit state
//   page             SplitMix64 stream of (c, shard)  8 bytes a number, little-endian
//
// So whoever loads a page can prove that it is the right one for this prompt at this place. This
// shares no code and no formula with the cache's keys and checksums. Stateless; any thread.
#ifndef PANDO_CLIENT_CTL_PAGE_BYTES_H_
#define PANDO_CLIENT_CTL_PAGE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pando::ctl {

// One state for each full block of `tokens`: it stands for the block and all before it.
std::vector<uint64_t> BlockChain(std::span<const uint32_t> tokens, uint32_t block_tokens);

// The bytes of one page.
class PageBytes {
 public:
  PageBytes(uint64_t chain, uint32_t shard);

  // Writes the page's bytes from `offset` (a multiple of 8) on.
  void Fill(uint64_t offset, std::span<std::byte> out) const;
  // True if `bytes` are the page's bytes from `offset` (a multiple of 8) on, every one.
  bool Equal(uint64_t offset, std::span<const std::byte> bytes) const;

 private:
  uint64_t start_;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_PAGE_BYTES_H_
