#include "client/ctl/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "client/client.h"
#include "client/ctl/ceiling.h"
#include "client/ctl/node_watch.h"
#include "client/ctl/page_bytes.h"
#include "client/ctl/prompt_tokens.h"
#include "client/ctl/stand_in_replica.h"

namespace pando::ctl {
namespace {

constexpr int64_t kWatchTimeout = 5'000'000'000;  // for a node's own figures

using Replicas = std::vector<std::unique_ptr<StandInReplica>>;

absl::StatusOr<Replicas> AttachReplicas(const ReplayOptions& options, Interrupt* interrupt) {
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
    replica.prefill_speedup = options.prefill_speedup;
    replica.await_ns = options.await_ns;
    replica.seed = options.seed;
    replica.call_timeout_ns = options.timeout_ns;
    replica.patience_ns = options.timeout_ns / static_cast<int64_t>(options.sockets.size());
    replicas.push_back(std::make_unique<StandInReplica>(replica, interrupt));
    const absl::Status attached = replicas.back()->WaitAttached(deadline);
    if (!attached.ok()) return attached;
  }
  return replicas;
}

// One name for all that a socket may be called by: with or without unix:, through links and `..`.
std::string Normalized(const std::string& socket) {
  const std::string path = socket.starts_with("unix:") ? socket.substr(5) : socket;
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, failed);
  return "unix:" + (failed ? path : real.string());
}

// Fills in the nodes, one for each different socket; returns the node of each replica.
std::vector<size_t> GroupByNode(const std::vector<std::string>& sockets,
                                std::vector<NodeTotals>* nodes) {
  const std::vector<std::string> different = NodesOf(sockets);
  for (const std::string& socket : different) nodes->emplace_back().socket = socket;
  std::vector<size_t> node_of;
  for (const std::string& named : sockets) {
    const auto at = std::find(different.begin(), different.end(), Normalized(named));
    node_of.push_back(static_cast<size_t>(at - different.begin()));
    ++(*nodes)[node_of.back()].replicas;
  }
  return node_of;
}

// A node's admin socket lies beside its engines' one, unless it was told otherwise.
std::string AdminBeside(const std::string& socket) {
  return socket.substr(0, socket.rfind('/') + 1) + "admin.sock";
}

// The nodes' own figures of a replay.
class Watches {
 public:
  Watches(const ReplayOptions& options, ReplayResult* result) : result_(result) {
    const SpaceName space{ModelName(options.seed), options.block_tokens, options.shards,
                          options.page_bytes};
    for (size_t i = 0; i < result->nodes.size(); ++i) {
      const std::string admin =
          i < options.admins.size() ? options.admins[i] : AdminBeside(result->nodes[i].socket);
      watches_.push_back(
          std::make_unique<NodeWatch>(admin, space, std::min(options.timeout_ns, kWatchTimeout)));
      Note(i, watches_.back()->Start());
    }
  }

  // A request on that node has waited and got something.
  void Pulled(size_t node) {
    if (watches_[node] == nullptr) return;
    const std::optional<int64_t> nanos = watches_[node]->TakePullNanos();
    if (nanos) result_->latency.pull_ns.push_back(*nanos);
  }

  void Finish() {
    for (size_t i = 0; i < watches_.size(); ++i) {
      if (watches_[i] == nullptr) continue;
      const absl::StatusOr<NodeCounts> counts = watches_[i]->Since();
      Note(i, counts.status());
      if (counts.ok()) result_->AddCounts(i, *counts);
      if (watches_[i] != nullptr) result_->nodes[i].restarted = watches_[i]->restarted();
    }
  }

 private:
  void Note(size_t node, const absl::Status& status) {
    if (status.ok()) return;
    result_->nodes[node].unwatched = std::string(status.message());
    watches_[node].reset();
  }

  ReplayResult* const result_;
  std::vector<std::unique_ptr<NodeWatch>> watches_;  // null: the node's figures are not known
};

}  // namespace

std::vector<std::string> NodesOf(const std::vector<std::string>& sockets) {
  std::vector<std::string> nodes;
  for (const std::string& named : sockets) {
    const std::string socket = Normalized(named);
    if (std::find(nodes.begin(), nodes.end(), socket) == nodes.end()) nodes.push_back(socket);
  }
  return nodes;
}

absl::StatusOr<ReplayResult> Replay(const ReplayOptions& options,
                                    std::span<const TraceRequest> requests, Progress& progress,
                                    Interrupt& interrupt) {
  ReplayResult result;
  const std::vector<size_t> node_of = GroupByNode(options.sockets, &result.nodes);
  absl::StatusOr<Replicas> replicas = AttachReplicas(options, &interrupt);
  if (absl::IsCancelled(replicas.status())) {
    result.interrupted = true;
    return result;
  }
  if (!replicas.ok()) return replicas.status();
  Watches watches(options, &result);
  Ceiling ceiling(options.block_tokens);
  std::vector<uint32_t> tokens;
  const int64_t start = client::NowNanos();
  for (uint64_t index = 0; index < requests.size() && !interrupt.Seen(); ++index) {
    MakeTokens(requests[index], index, options.seed, &tokens);
    const std::vector<uint64_t> chain = BlockChain(tokens, options.block_tokens);
    const uint64_t ceiling_tokens = ceiling.Add(tokens.size(), chain);
    const size_t replica =
        Route(options.routing, requests[index], index, options.seed, replicas->size());
    const Outcome outcome = (*replicas)[replica]->Play(index + 1, tokens, chain);
    result.Add(node_of[replica], outcome, ceiling_tokens);
    if (outcome.waits.more > 0) watches.Pulled(node_of[replica]);
    progress.Update(index + 1, fmt::format("hit {:.2f} %", 100 * result.hit_rate()));
  }
  result.interrupted = result.requests < requests.size();
  result.seconds = static_cast<double>(client::NowNanos() - start) / 1e9;
  watches.Finish();
  return result;
}

}  // namespace pando::ctl
