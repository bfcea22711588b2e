// Whether the machine has room for a node, looked at before it starts. Stateless; any thread.
#ifndef PANDO_NODE_RUNTIME_ROOM_H_
#define PANDO_NODE_RUNTIME_ROOM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "node/runtime/log.h"
#include "node/runtime/options.h"
#include "radix/base/ids.h"

namespace pando::runtime {

// Memory for the slab, with what everybody else keeps.
absl::Status CheckMemory(Bytes slab);

// How many sessions there are descriptors for. Without room for the slab and a session there is no
// node; with too few for all sessions and peers there is, and `log` says so.
absl::StatusOr<uint32_t> SessionsMax(const Options& options, Log* log);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_ROOM_H_
