// What a node's own status says of a replay: its figures before, and what was added since.
//
// Which tokens came from a peer is the node's to know: replicas see pages of the host alone. Tokens
// are those of the replay's own space, so that other engines on the node do not show; pulls and
// refusals to fetch are all of the node's. One thread.
#ifndef PANDO_CLIENT_CTL_NODE_WATCH_H_
#define PANDO_CLIENT_CTL_NODE_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/replay_result.h"

namespace pando::ctl {

// The space that a replay's replicas make.
struct SpaceName {
  std::string model;
  uint32_t block_tokens = 0, shards = 0;
  uint64_t page_bytes = 0;
};

class NodeWatch {
 public:
  // `admin`: the node's admin socket.
  NodeWatch(const std::string& admin, SpaceName space, int64_t timeout_ns);

  // Remembers what there is before; an error: nothing can be told of this node.
  absl::Status Start();
  // What was added since Start.
  absl::StatusOr<NodeCounts> Since();
  // The node began another life meanwhile: what it did before that and after it was last read is
  // not known.
  bool restarted() const { return restarted_; }
  // The mean time of the pulls that ended since it was last asked; nullopt: none did.
  std::optional<int64_t> TakePullNanos();

 private:
  absl::StatusOr<NodeCounts> Read();
  // Reads, into `last_`; what a life that is over had added is kept.
  absl::Status Update();
  NodeCounts Total() const;

  AdminClient client_;
  const SpaceName space_;
  NodeCounts before_, last_;  // of the node's present life
  NodeCounts earlier_;        // what its lives before that have added
  bool restarted_ = false;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_NODE_WATCH_H_
