// The metrics of a node in a cluster: its directory, what it tells, and one value a peer of what it
// measured at each.
//
// A peer's labels are its name, as it says, and the address that the operator configured, so there
// are as many as configured peers, and no two alike whatever they call themselves (FAULTS F7). What
// a peer tells of its own account is for its own /metrics, not repeated here: who adds up all nodes
// would count it twice. Stateless; any thread.
#ifndef PANDO_NODE_RUNTIME_METRICS_CLUSTER_H_
#define PANDO_NODE_RUNTIME_METRICS_CLUSTER_H_

#include "node/control/peer_server.h"
#include "node/core/peer_messages.h"
#include "node/runtime/metric_families.h"
#include "transfer/engine.h"

namespace pando::runtime {

// What the sockets towards peers count themselves, since the start.
struct WireCounters {
  control::PeerServerCounters control;
  TransferCounters data;  // all 0 without sharing
};

void AddWire(const WireCounters& wire, Families* out);
void AddCluster(const ClusterStatus& cluster, Families* out);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_METRICS_CLUSTER_H_
