// Prompts and page contents that prove themselves: all follows from one number, the prompt's seed.
// Any thread.
#ifndef PANDO_TESTS_E2E_PROCESS_STAMP_H_
#define PANDO_TESTS_E2E_PROCESS_STAMP_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace pando::e2e {

inline uint64_t Mix(uint64_t x) {  // splitmix64's finaliser (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Prompts are a tree: those that agree in the low 48 bits of their seeds share the first 16 blocks,
// in the low 56 bits the first 32.
inline uint64_t SeedAt(uint64_t seed, uint64_t block) {
  if (block < 16) return seed & 0xffff'ffff'ffff;
  return block < 32 ? seed & 0xff'ffff'ffff'ffff : seed;
}

inline constexpr uint64_t kBlockTokens = 16;  // of every stand-in engine

// `count` tokens of the prompt with this seed; a longer one begins with a shorter one.
inline std::vector<uint32_t> Tokens(uint64_t seed, uint64_t count) {
  std::vector<uint32_t> tokens(count);
  for (uint64_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<uint32_t>(Mix(SeedAt(seed, i / kBlockTokens) * 1'000'003 + i));
  }
  return tokens;
}

// What the page of block `block` and `shard` of that prompt must hold.
inline std::vector<std::byte> PageContent(uint64_t seed, uint32_t block, uint32_t shard,
                                          size_t bytes) {
  std::vector<std::byte> page(bytes);
  const uint64_t start = Mix(SeedAt(seed, block) ^ Mix(block + 1ull) ^ Mix(shard + 0x10000ull));
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = Mix(start + i);
    std::memcpy(page.data() + i, &word, bytes - i < 8 ? bytes - i : 8);
  }
  return page;
}

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_PROCESS_STAMP_H_
