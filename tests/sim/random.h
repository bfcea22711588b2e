// The one source of chance of a simulation: the same numbers from the same seed on every machine
// (the standard library's distributions do not promise that). One thread.
#ifndef PANDO_TESTS_SIM_RANDOM_H_
#define PANDO_TESTS_SIM_RANDOM_H_

#include <cstdint>

namespace pando::sim {

// Mixes a number into a hash; also the step of the generator below (splitmix64).
constexpr uint64_t Mix(uint64_t hash, uint64_t value) {
  uint64_t x = hash ^ (value + 0x9e3779b97f4a7c15ull);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15ull, 0); }
  uint64_t Below(uint64_t n) { return Next() % n; }
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_RANDOM_H_
