#include "client/ctl/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "client/client.h"
#include "client/ctl/ceiling.h"
#include "client/ctl/page_bytes.h"
#include "client/ctl/prompt_tokens.h"
#include "client/ctl/stand_in_replica.h"

namespace pando::ctl {
namespace {

using Replicas = std::vector<std::unique_ptr<StandInReplica>>;

absl::StatusOr<Replicas> AttachReplicas(const ReplayOptions& options) {
  Replicas replicas;
  const int64_t deadline = client::NowNanos() + options.timeout_ns;
  for (const std::string& socket : options.sockets) {
    ReplicaOptions replica;
    replica.socket = socket;
    replica.key = fmt::format("pandoctl-{}/{}", getpid(), replicas.size());
    replica.shards = options.shards;
    replica.block_tokens = options.block_tokens;
    replica.page_bytes = options.page_bytes;
    replica.prefill_tokens_per_s = options.prefill_tokens_per_s;
    replica.seed = options.seed;
    replica.call_timeout_ns = options.timeout_ns;
    replicas.push_back(std::make_unique<StandInReplica>(replica));
    const absl::Status attached = replicas.back()->WaitAttached(deadline);
    if (!attached.ok()) return attached;
  }
  return replicas;
}

// Sockets may be named with or without unix:; here it is always with.
std::string Normalized(const std::string& socket) {
  return socket.starts_with("unix:") ? socket : "unix:" + socket;
}

// Fills in the nodes, one for each different socket; returns the node of each replica.
std::vector<size_t> GroupByNode(const std::vector<std::string>& sockets,
                                std::vector<NodeTotals>* nodes) {
  std::vector<size_t> node_of;
  for (const std::string& named : sockets) {
    const std::string socket = Normalized(named);
    const auto same = std::find_if(nodes->begin(), nodes->end(),
                                   [&](const NodeTotals& node) { return node.socket == socket; });
    node_of.push_back(static_cast<size_t>(same - nodes->begin()));
    if (same == nodes->end()) nodes->emplace_back().socket = socket;
    ++(*nodes)[node_of.back()].replicas;
  }
  return node_of;
}

}  // namespace

absl::StatusOr<ReplayResult> Replay(const ReplayOptions& options,
                                    std::span<const TraceRequest> requests, Progress& progress,
                                    Interrupt& interrupt) {
  absl::StatusOr<Replicas> replicas = AttachReplicas(options);
  if (!replicas.ok()) return replicas.status();
  ReplayResult result;
  const std::vector<size_t> node_of = GroupByNode(options.sockets, &result.nodes);
  Ceiling ceiling(options.block_tokens);
  std::vector<uint32_t> tokens;
  const int64_t start = client::NowNanos();
  for (uint64_t index = 0; index < requests.size() && !interrupt.Seen(); ++index) {
    MakeTokens(requests[index], index, options.seed, &tokens);
    const std::vector<uint64_t> chain = BlockChain(tokens, options.block_tokens);
    const uint64_t ceiling_tokens = ceiling.Add(tokens.size(), chain);
    const size_t replica =
        Route(options.routing, requests[index], index, options.seed, replicas->size());
    result.Add(node_of[replica], (*replicas)[replica]->Play(index + 1, tokens, chain),
               ceiling_tokens);
    progress.Update(index + 1, fmt::format("hit {:.2f} %", 100 * result.hit_rate()));
  }
  result.interrupted = result.requests < requests.size();
  result.seconds = static_cast<double>(client::NowNanos() - start) / 1e9;
  return result;
}

}  // namespace pando::ctl
