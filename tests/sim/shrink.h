// Makes a simulation that fails smaller: which of its decisions are enough for the same violation.
// Delta debugging: ever smaller parts are left out while it stays. One thread.
#ifndef PANDO_TESTS_SIM_SHRINK_H_
#define PANDO_TESTS_SIM_SHRINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/decisions.h"

namespace pando::sim {

// Whether two violations differ in numbers at most.
bool SameViolation(std::string a, std::string b);

// `stays` is asked at most so many times, of fewer and fewer decisions.
std::vector<Decision> Shrink(std::vector<Decision> decisions, uint64_t asks_max,
                             const std::function<bool(const std::vector<Decision>&)>& stays);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SHRINK_H_
