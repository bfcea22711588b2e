#include "node/runtime/room.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "node/core/cluster/limits.h"
#include "node/core/limits.h"
#include "node/runtime/slab_populator.h"
#include "radix/base/units.h"
#include "transfer/memory/host_slab.h"

namespace pando::runtime {
namespace {

// Descriptors: one for each extent; a session's socket and its process's pidfd; and all the rest:
// the admin socket's, HTTP's, gRPC's, and what comes with a message until it is closed.
constexpr uint64_t kFdsPerSession = 2;
constexpr uint64_t kFdsOfNode = 128;
// A channel to each peer; and each connection that peers made is open twice (PeerAcceptor). Pages
// go by the transfer process's own.
constexpr uint64_t kFdsOfPeers = limits::kPeers + 2 * limits::kPeerConnections;

uint64_t FdLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

absl::Status CheckMemory(Bytes slab) {
  const absl::StatusOr<Bytes> available = AvailableMemory();
  if (!available.ok()) return available.status();
  const Bytes room(*available > kMemoryReserve ? (*available - kMemoryReserve).value() : 0);
  if (slab <= room) return absl::OkStatus();
  return absl::FailedPreconditionError("--host-slab: found " + FormatBytes(slab) +
                                       "; the machine has room for " + FormatBytes(room) +
                                       " (what is available without " +
                                       FormatBytes(kMemoryReserve) + " for everybody else)");
}

absl::StatusOr<uint32_t> SessionsMax(const Options& options, Log* log) {
  const uint64_t limit = FdLimit();
  const uint64_t extents = options.host_slab.value() / kExtentBytes.value();
  const uint64_t least = extents + kFdsOfNode + kFdsPerSession;
  const uint64_t peers = options.cluster.peer_listen.empty() ? 0 : kFdsOfPeers;
  const uint64_t wanted = extents + kFdsOfNode + limits::kSessions * kFdsPerSession + peers;
  if (limit < least) {
    return absl::FailedPreconditionError(fmt::format(
        "file descriptors: found a hard limit of {} (RLIMIT_NOFILE); needed are {} at least, {} of "
        "them for the extents of --host-slab, and {} for {} sessions and all peers; raise it "
        "(ulimit -Hn, LimitNOFILE=), or make --host-slab smaller",
        limit, least, extents, wanted, limits::kSessions));
  }
  if (limit >= wanted) return limits::kSessions;
  const uint64_t left = limit - least;
  const uint64_t for_peers = std::min(peers, left / 2);
  const auto sessions = static_cast<uint32_t>(
      std::min<uint64_t>(limits::kSessions, (left - for_peers) / kFdsPerSession + 1));
  log->Write(LogLine::Level::kWarning, "node.few_descriptors",
             {{"limit", std::to_string(limit)},
              {"wanted", std::to_string(wanted)},
              {"sessions_max", std::to_string(sessions)},
              {"hint", "raise the hard limit of RLIMIT_NOFILE (ulimit -Hn, LimitNOFILE=)"}});
  return sessions;
}

}  // namespace pando::runtime
