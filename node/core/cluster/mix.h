// Two mixes of 64-bit keys. Immutable.
//
//   DigestOf(key)       a part of the protocol between nodes: what a feed's digest is the sum of
//   KeyMixer(seed)      a node's own: where a key lies in its table, unknown to those who send keys
//
// Both are one-to-one, so a mixed key names its key.
#ifndef PANDO_NODE_CORE_CLUSTER_MIX_H_
#define PANDO_NODE_CORE_CLUSTER_MIX_H_

#include <cstdint>

namespace pando {

// The finaliser of SplitMix64. The digest of a set of keys is the sum of these, modulo 2^64: it
// grows with each key that comes, shrinks with each that goes, and their order does not matter.
constexpr uint64_t DigestOf(uint64_t key) {
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
  key = (key ^ key >> 27) * 0x94d049bb133111ebull;
  return key ^ key >> 31;
}

class KeyMixer {
 public:
  explicit constexpr KeyMixer(uint64_t seed) : seed_(DigestOf(seed)) {}

  constexpr uint64_t Mix(uint64_t key) const {
    key = ((key ^ seed_) + (seed_ << 32 | seed_ >> 32)) * kFirst;
    key = (key ^ key >> 32) * kSecond;
    return key ^ key >> 32;
  }
  constexpr uint64_t Unmix(uint64_t mixed) const {
    mixed = (mixed ^ mixed >> 32) * Inverse(kSecond);
    mixed = (mixed ^ mixed >> 32) * Inverse(kFirst);
    return (mixed - (seed_ << 32 | seed_ >> 32)) ^ seed_;
  }

 private:
  static constexpr uint64_t kFirst = 0xd6e8feb86659fd93ull, kSecond = 0xc2b2ae3d27d4eb4full;

  // Of an odd number modulo 2^64, by Newton's steps: each doubles the bits that are right.
  static constexpr uint64_t Inverse(uint64_t odd) {
    uint64_t inverse = odd;
    for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
    return inverse;
  }

  uint64_t seed_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_MIX_H_
