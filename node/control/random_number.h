// Numbers that nobody can guess: boot ids, where the ids of a life begin, grants. Any thread.
#ifndef PANDO_NODE_CONTROL_RANDOM_NUMBER_H_
#define PANDO_NODE_CONTROL_RANDOM_NUMBER_H_

#include <cstdint>

namespace pando::control {

// From the system; never 0.
uint64_t RandomNumber();

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_RANDOM_NUMBER_H_
