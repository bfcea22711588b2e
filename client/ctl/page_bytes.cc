#include "client/ctl/page_bytes.h"

#include <bit>
#include <cstring>

#include "client/ctl/mix.h"

namespace pando::ctl {
namespace {

static_assert(std::endian::native == std::endian::little, "pages are little-endian words");

// The words of a page from `offset` bytes on. Kept in registers: a member would be read again after
// each byte that is written.
class Words {
 public:
  Words(uint64_t start, uint64_t offset) : state_(start + offset / 8 * kGolden) {}
  uint64_t Next() { return Mix64(state_ += kGolden); }

 private:
  uint64_t state_;
};

}  // namespace

std::vector<uint64_t> BlockChain(std::span<const uint32_t> tokens, uint32_t block_tokens) {
  std::vector<uint64_t> chain;
  chain.reserve(tokens.size() / block_tokens);
  uint64_t state = Mix64(block_tokens * kGolden);
  for (size_t begin = 0; begin + block_tokens <= tokens.size(); begin += block_tokens) {
    for (const uint32_t token : tokens.subspan(begin, block_tokens)) {
      // A bijection of the state for each token, so that one changed token always shows.
      state = Mix64(state + (token + 1ull) * kGolden);
    }
    chain.push_back(state);
  }
  return chain;
}

PageBytes::PageBytes(uint64_t chain, uint32_t shard)
    : start_(Mix64(Mix64(chain) + (shard + 1ull) * kGolden)) {}

void PageBytes::Fill(uint64_t offset, std::span<std::byte> out) const {
  Words words(start_, offset);
  for (; out.size() >= 8; out = out.subspan(8)) {
    const uint64_t word = words.Next();
    std::memcpy(out.data(), &word, 8);
  }
  const uint64_t last = words.Next();
  std::memcpy(out.data(), &last, out.size());
}

bool PageBytes::Equal(uint64_t offset, std::span<const std::byte> bytes) const {
  Words words(start_, offset);
  uint64_t differing = 0;  // no early exit: pages are right, and a branch a word costs more
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    differing |= word ^ words.Next();
  }
  const uint64_t last = words.Next();
  return differing == 0 && std::memcmp(bytes.data(), &last, bytes.size()) == 0;
}

}  // namespace pando::ctl
