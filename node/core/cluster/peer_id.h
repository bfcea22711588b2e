// A peer (the daemon of another host) as this node counts them. Immutable.
#ifndef PANDO_NODE_CORE_CLUSTER_PEER_ID_H_
#define PANDO_NODE_CORE_CLUSTER_PEER_ID_H_

#include <cstdint>

#include "radix/base/strong.h"

namespace pando {

// Chosen by this node, the same for all lives of the peer's process; lower ones win ties.
using PeerId = Id<struct PeerIdTag, uint32_t>;

}  // namespace pando

#endif  // PANDO_NODE_CORE_CLUSTER_PEER_ID_H_
