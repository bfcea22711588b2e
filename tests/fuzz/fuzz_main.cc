// libFuzzer's entry into one target, PANDO_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pando::fuzz::PANDO_FUZZ_TARGET({data, size});
  return 0;
}
