// How nodes introduce themselves to each other: what must be equal, and what is said when it is
// not (FAULTS A7, D8). Immutable; any thread.
#ifndef PANDO_NODE_CORE_HELLO_H_
#define PANDO_NODE_CORE_HELLO_H_

#include <optional>
#include <string>
#include <string_view>

#include "node/core/peer_messages.h"

namespace pando {

// All but name, boot, address and spaces, under the cluster's key secret.
PeerHello FormulasOf(std::string_view key_secret);

// What keeps two nodes from working together, if anything, as `mine` sees `theirs`: found,
// expected, what to do.
std::optional<std::string> CheckHello(const PeerHello& mine, const PeerHello& theirs);

}  // namespace pando

#endif  // PANDO_NODE_CORE_HELLO_H_
