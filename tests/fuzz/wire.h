// What may happen to bytes on their way. Stateless.
#ifndef PANDO_TESTS_FUZZ_WIRE_H_
#define PANDO_TESTS_FUZZ_WIRE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tests/fuzz/script.h"

namespace pando::fuzz {

// `odd` from 128 on turns a bit over: which one, `odd` and `more` say.
inline std::string Bend(const Operation& operation, std::string bytes) {
  if (operation.odd < 128 || bytes.empty()) return bytes;
  const size_t bit = (operation.more * 128u + operation.odd) % (bytes.size() * 8);
  bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  return bytes;
}

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_WIRE_H_
