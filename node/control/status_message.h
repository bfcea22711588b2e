// The core's status as the admin service's messages. Stateless; any thread.
#ifndef PANDO_NODE_CONTROL_STATUS_MESSAGE_H_
#define PANDO_NODE_CONTROL_STATUS_MESSAGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "node/core/node_core.h"

namespace pando::v1 {
class Run;
class Status;
}  // namespace pando::v1

namespace pando::control {

// All that comes from the core; who the node is, is the caller's to add.
void WriteStatus(const CoreStatus& status, v1::Status* out);
void WriteRun(const RunInfo& run, v1::Run* out);
// The peers that hold the run's last complete block: all are counted, the first few named.
inline constexpr size_t kHoldersNamed = 8;
void WriteHolders(const std::vector<std::string>& holders, v1::Run* out);

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_STATUS_MESSAGE_H_
