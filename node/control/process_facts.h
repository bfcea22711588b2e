// What the system says about this process. Any thread.
#ifndef PANDO_NODE_CONTROL_PROCESS_FACTS_H_
#define PANDO_NODE_CONTROL_PROCESS_FACTS_H_

#include <cstdint>
#include <optional>

namespace pando::control {

struct ProcessFacts {
  std::optional<uint64_t> fds;  // open; nullopt: they could not be counted
  uint64_t threads = 0;
};
ProcessFacts ReadProcessFacts();

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PROCESS_FACTS_H_
