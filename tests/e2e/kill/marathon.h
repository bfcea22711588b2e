// A cluster of real processes of which one after another is killed or stopped, and what must hold
// after each: the others answer, no byte is wrong, memory is back within a second; and, each time
// all engines have ended, every count is at its base.
#ifndef PANDO_TESTS_E2E_KILL_MARATHON_H_
#define PANDO_TESTS_E2E_KILL_MARATHON_H_

#include <cstdint>

#include "tests/e2e/kill/report.h"

namespace pando::e2e {

struct MarathonOptions {
  uint64_t seed = 1;
  uint64_t kills = 1000;     // at least; the last round may have one more
  uint64_t first_round = 0;  // to repeat one
  int64_t seconds = 0;       // ends the rounds before; 0: never
  bool progress = false;     // a line now and then, on stderr
};

// Ends by SIGTERM of all. Orphans of those that it kills become this process's children.
Report RunMarathon(const MarathonOptions& options);

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_MARATHON_H_
