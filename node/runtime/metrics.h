// The node's numbers in Prometheus' text form.
//
// Counters and gauges in base units (tokens, bytes, pages), bounded labels (tier, state, kind),
// never an id, a user or a scope. A ratio is the reader's to make. Stateless; any thread.
#ifndef PANDO_NODE_RUNTIME_METRICS_H_
#define PANDO_NODE_RUNTIME_METRICS_H_

#include <optional>
#include <string>

#include "node/control/admin_server.h"
#include "node/control/process_facts.h"
#include "node/core/node_core.h"
#include "node/runtime/metrics_cluster.h"

namespace pando::runtime {

struct MetricsInput {
  CoreStatus core;
  control::NodeFacts facts;
  control::ProcessFacts process;
  bool ready = false;
  std::optional<WireCounters> wire;  // of a node in a cluster
};
std::string MetricsText(const MetricsInput& input);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_METRICS_H_
