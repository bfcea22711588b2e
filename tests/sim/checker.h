// What a simulation found: broken promises, and one hash of everything that the cores put out. One
// thread.
#ifndef PANDO_TESTS_SIM_CHECKER_H_
#define PANDO_TESTS_SIM_CHECKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "node/core/node_core.h"
#include "tests/sim/random.h"

namespace pando::sim {

class Checker {
 public:
  // A promise was broken. The first few are kept, all are counted.
  void Fail(std::string what);
  void Expect(bool holds, const char* what) {
    if (!holds) Fail(what);
  }

  // Mixes an output into the hash.
  void Add(const Output& output);

  uint64_t failures() const { return failures_; }
  const std::vector<std::string>& first_failures() const { return first_; }
  uint64_t hash() const { return hash_; }

 private:
  void Add(uint64_t value) { hash_ = Mix(hash_, value); }
  void Add(const std::string& text);
  void Add(const Answer& answer);

  uint64_t failures_ = 0;
  uint64_t hash_ = 0;
  std::vector<std::string> first_;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_CHECKER_H_
