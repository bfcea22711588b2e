// Block keys: the chain of hashes that names a block together with all that comes before it.
//
//   key_0 = H(identity of the space, scope)      Root
//   key_i = H(key_{i-1}, tokens_i, extra_i)      Block
//   key'  = H(key, scope)                        Scope: entering a narrower one
//
// H is XXH3-128 with a secret derived from the cluster's key secret. What it hashes is a sequence
// of fields, each {tag: u32, length in bytes: u32, bytes}, little-endian, nothing between them:
//
//   Root   {4, identity} {5, scope}
//   Block  {1, low and high half of the key above} {2, tokens, 4 bytes each} {3, extra}
//   Scope  {1, low and high half of the key above} {5, scope}
//
// So no two different sequences of fields have the same bytes. The formula is a part of the
// protocol between nodes: tests/data/golden_keys.txt holds it to its word.
//
// XXH3 is not collision resistant. A key chooses what is compared; content decides.
// Immutable; any thread. Nothing is allocated.
#ifndef PANDO_RADIX_KEY_BLOCK_KEY_H_
#define PANDO_RADIX_KEY_BLOCK_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pando {

struct BlockKey {
  uint64_t low = 0, high = 0;
  friend constexpr bool operator==(const BlockKey&, const BlockKey&) = default;
};

class KeyChain {
 public:
  // `secret`: any bytes, empty for the built-in default. `collide` makes every key the same.
  explicit KeyChain(std::string_view secret, bool collide = false);

  BlockKey Root(std::string_view identity, std::string_view scope) const;
  BlockKey Scope(BlockKey above, std::string_view scope) const;
  BlockKey Block(BlockKey above, std::span<const uint32_t> tokens, std::string_view extra) const;
  // The key of the last of several blocks that follow each other and have nothing extra: as many
  // calls of Block. `tokens` are whole blocks.
  BlockKey Blocks(BlockKey above, std::span<const uint32_t> tokens, size_t block_tokens) const;

 private:
  // Longer than XXH3 asks for, so that keys of all lengths depend on all of the cluster's secret.
  static constexpr size_t kSecretBytes = 192;
  alignas(64) std::array<unsigned char, kSecretBytes> secret_{};
  bool collide_ = false;
};

}  // namespace pando

#endif  // PANDO_RADIX_KEY_BLOCK_KEY_H_
