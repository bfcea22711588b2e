// Plays a trace through stand-in replicas on live nodes, in file order, one request at a time, and
// counts what was hit beside what an infinite cache would have hit. One thread.
#ifndef PANDO_CLIENT_CTL_REPLAY_H_
#define PANDO_CLIENT_CTL_REPLAY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/progress.h"
#include "client/ctl/replay_result.h"
#include "client/ctl/routing.h"
#include "client/ctl/trace.h"

namespace pando::ctl {

struct ReplayOptions {
  std::vector<std::string> sockets;  // one replica each; a socket may be named several times
  Routing routing = Routing::kRoundRobin;
  uint32_t block_tokens = 16;
  uint64_t page_bytes = 4096;
  uint32_t shards = 1;
  uint64_t prefill_tokens_per_s = 0;
  uint64_t prefill_speedup = 0;      // as ReplicaOptions
  int64_t await_ns = 2'000'000'000;  // for what another makes
  std::vector<std::string> admins;   // of the different nodes in order; else beside the socket
  uint64_t seed = 0;
  int64_t timeout_ns = 5'000'000'000;  // of attaching, and of each call
};

// The different nodes among the sockets, in order.
std::vector<std::string> NodesOf(const std::vector<std::string>& sockets);

// UNAVAILABLE if a node does not take the sessions, FAILED_PRECONDITION if it refuses them. Once
// all are attached it always returns a result: a node that goes away is waited for, for twice the
// timeout in all, and makes misses. Stops early, and says so in the result, when `interrupt` has
// come.
absl::StatusOr<ReplayResult> Replay(const ReplayOptions& options,
                                    std::span<const TraceRequest> requests, Progress& progress,
                                    Interrupt& interrupt);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_REPLAY_H_
