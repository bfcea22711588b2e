// Whether the machine has room for a node, looked at before it starts. Stateless; any thread.
#ifndef PANDO_NODE_RUNTIME_ROOM_H_
#define PANDO_NODE_RUNTIME_ROOM_H_

#include "absl/status/status.h"
#include "node/runtime/log.h"
#include "node/runtime/options.h"
#include "radix/base/ids.h"

namespace pando::runtime {

// Memory for the slab, with what everybody else keeps.
absl::Status CheckMemory(Bytes slab);

// Without descriptors for the slab and a session there is no node; with too few for all sessions
// and peers there is, and `log` says so.
absl::Status CheckDescriptors(const Options& options, Log* log);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_ROOM_H_
