#include "client/ctl/page_bytes.h"

#include <bit>
#include <cstring>

#include "client/ctl/mix.h"

namespace pando::ctl {
namespace {

static_assert(std::endian::native == std::endian::little, "pages are little-endian words");

uint64_t WordAt(uint64_t start, uint64_t index) {
  return Mix64(start + (index + 1) * kGolden);
}

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
  uint64_t index = offset / 8;
  size_t at = 0;
  for (; at + 8 <= out.size(); at += 8, ++index) {
    const uint64_t word = WordAt(start_, index);
    std::memcpy(out.data() + at, &word, 8);
  }
  if (at < out.size()) {
    const uint64_t word = WordAt(start_, index);
    std::memcpy(out.data() + at, &word, out.size() - at);
  }
}

bool PageBytes::Equal(uint64_t offset, std::span<const std::byte> bytes) const {
  uint64_t index = offset / 8;
  uint64_t differing = 0;  // no early exit: pages are right, and a branch a word costs more
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8, ++index) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    differing |= word ^ WordAt(start_, index);
  }
  if (at < bytes.size()) {
    const uint64_t expected = WordAt(start_, index);
    if (std::memcmp(bytes.data() + at, &expected, bytes.size() - at) != 0) return false;
  }
  return differing == 0;
}

}  // namespace pando::ctl
