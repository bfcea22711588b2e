#include "tests/e2e/process/engine_lines.h"

#include <sstream>

namespace pando::e2e {

std::vector<std::string> EngineArgs(const NodeProcess& node, const std::string& key,
                                    const std::string& role, uint32_t shard, uint32_t world,
                                    const std::string& pause) {
  return {BinaryPath("e2e_engine"), node.socket(),         key,  role,
          std::to_string(shard),    std::to_string(world), pause};
}

std::optional<CycleLine> ReadCycle(Child& engine, int64_t deadline) {
  const std::optional<std::string> line = engine.ReadUntil("cycle ", deadline);
  if (!line) return std::nullopt;
  CycleLine c;
  std::istringstream words(line->substr(6));
  words >> c.hit >> c.loaded >> c.stored >> c.wrong >> c.settled;
  return c;
}

}  // namespace pando::e2e
