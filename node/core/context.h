// What the step machines of one core share: the time of the step, the cache, the counters, and the
// ways out (log lines, named steps). Owner thread only.
#ifndef PANDO_NODE_CORE_CONTEXT_H_
#define PANDO_NODE_CORE_CONTEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "node/core/node_core.h"
#include "node/core/steps.h"

namespace pando {

// One life of one replica; never used twice in a node's life. It is also the writer that the cache
// knows the replica's reservations by.
using ReplicaNumber = Id<struct ReplicaNumberTag, uint64_t>;

struct CoreContext {
  using LogFields = std::vector<std::pair<std::string, std::string>>;

  CoreContext(const PrefixCache::Options& options, StepListener* listener)
      : cache(options), steps(listener) {}

  void Reached(CoreStep step) {
    if (steps != nullptr) steps->Reached(CoreStepName(step));
  }
  void Log(LogLine::Level level, std::string event, LogFields fields);

  PrefixCache cache;
  StepListener* steps;
  CoreCounters counters;
  Nanos now = 0;
  std::vector<Output>* outputs = nullptr;  // of the step that runs; null between steps
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_CONTEXT_H_
