// What the system says about this process. Any thread.
#ifndef PANDO_NODE_CONTROL_PROCESS_FACTS_H_
#define PANDO_NODE_CONTROL_PROCESS_FACTS_H_

#include <cstdint>

namespace pando::control {

struct ProcessFacts {
  uint64_t fds = 0;  // open, without the one that counting takes
  uint64_t threads = 0;
};
ProcessFacts ReadProcessFacts();

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PROCESS_FACTS_H_
