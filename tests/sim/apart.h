// A simulation in a process of its own, so that one that ends its process (a broken invariant of
// the core, a sanitizer's finding, an endless loop) is a violation like any other. Blocks; one
// thread.
#ifndef PANDO_TESTS_SIM_APART_H_
#define PANDO_TESTS_SIM_APART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/simulator.h"

namespace pando::sim {

struct Outcome {
  std::string violation;  // the first; empty: none
  std::string said;       // what the process said on its way out
  uint64_t hash = 0, steps = 0, events = 0, requests = 0, faults = 0;
  Coverage::Counts coverage;
  std::vector<Decision> decisions;  // that were made
};

// It may take so many seconds.
Outcome RunApart(SimulationOptions options, unsigned seconds = 120);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_APART_H_
