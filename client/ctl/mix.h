// SplitMix64 (Steele, Lea, Flood 2014): the k-th number of the stream of `seed` is
// Mix64(seed + k * kGolden). Nothing here is shared with the cache that it proves. Any thread.
#ifndef PANDO_CLIENT_CTL_MIX_H_
#define PANDO_CLIENT_CTL_MIX_H_

#include <cstdint>

namespace pando::ctl {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd

// A bijection of 64 bits in which every input bit changes about half of the output.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_MIX_H_
