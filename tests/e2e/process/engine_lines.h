// What a test says to an `e2e_engine` child process and reads from it. Stateless.
#ifndef PANDO_TESTS_E2E_PROCESS_ENGINE_LINES_H_
#define PANDO_TESTS_E2E_PROCESS_ENGINE_LINES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/process/child.h"
#include "tests/e2e/process/node_process.h"

namespace pando::e2e {

// To start one; `pause`: the client's step at which it stops itself, empty: none.
std::vector<std::string> EngineArgs(const NodeProcess& node, const std::string& key,
                                    const std::string& role, uint32_t shard, uint32_t world,
                                    const std::string& pause);

// What "cycle SEED TOKENS" came to, in blocks.
struct CycleLine {
  int hit = -1, loaded = -1, stored = -1, wrong = -1, settled = -1;
};
// The next one; nullopt at the deadline.
std::optional<CycleLine> ReadCycle(Child& engine, int64_t deadline);

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_PROCESS_ENGINE_LINES_H_
