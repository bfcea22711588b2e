// The only clock of the node: CLOCK_MONOTONIC, as in every deadline of the local protocol. Any
// thread.
#ifndef PANDO_NODE_LOCAL_CLOCK_H_
#define PANDO_NODE_LOCAL_CLOCK_H_

#include <time.h>

#include "radix/base/ids.h"

namespace pando::local {

inline Nanos Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanos>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_CLOCK_H_
