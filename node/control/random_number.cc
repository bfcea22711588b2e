#include "node/control/random_number.h"

#include <sys/random.h>

#include <cerrno>

#include "radix/base/check.h"

namespace pando::control {

uint64_t RandomNumber() {
  uint64_t number = 0;
  while (number == 0) {
    const ssize_t got = ::getrandom(&number, sizeof(number), 0);
    PANDO_CHECK(got == static_cast<ssize_t>(sizeof(number)) || errno == EINTR) << "getrandom";
  }
  return number;
}

}  // namespace pando::control
