#include "tests/fuzz/core_watch.h"
#include "tests/fuzz/engines.h"
#include "tests/fuzz/neighbours.h"
#include "tests/fuzz/script.h"

namespace pando::fuzz {

std::string RunScript(const Script& script) {
  CoreWatch watch(script.start);
  Engines engines(&watch);
  Neighbours neighbours(&watch);
  watch.on_output = [&](Output& output) {
    engines.Take(output);
    neighbours.Take(output);
  };
  if (script.peers) neighbours.Start();
  for (const Operation& operation : script.operations) {
    const bool engine = static_cast<uint8_t>(operation.kind) < kEngineKinds;
    engine ? engines.Do(operation) : neighbours.Do(operation);
    if (!watch.trouble().empty()) return watch.trouble();
  }
  engines.Leave();
  if (script.peers) neighbours.Leave();
  watch.ExpectBase();
  return watch.trouble();
}

}  // namespace pando::fuzz
