#include "client/ctl/node_watch.h"

#include <string_view>
#include <utility>

namespace pando::ctl {
namespace {

bool Matches(const v1::Space& space, const SpaceName& name) {
  if (space.block_tokens() != name.block_tokens || space.shards() != name.shards ||
      space.page_bytes() != name.page_bytes) {
    return false;
  }
  for (const v1::SpaceField& field : space.fields()) {
    if (field.name() == "model") return field.value() == name.model;
  }
  return false;
}

// What was added.
NodeCounts Added(const NodeCounts& before, NodeCounts now) {
  now.hit_peer -= before.hit_peer;
  now.pulls -= before.pulls;
  now.pull.pages -= before.pull.pages;
  now.pull.bytes -= before.pull.bytes;
  now.pull.failed -= before.pull.failed;
  now.pull.declined -= before.pull.declined;
  now.pull.seconds -= before.pull.seconds;
  return now;
}

}  // namespace

NodeWatch::NodeWatch(const std::string& admin, SpaceName space, int64_t timeout_ns)
    : client_(admin, timeout_ns), space_(std::move(space)) {}

absl::StatusOr<NodeCounts> NodeWatch::Read() {
  const absl::StatusOr<v1::Status> status = client_.GetStatus();
  if (!status.ok()) return status.status();
  NodeCounts counts;
  counts.boot_id = status->boot_id();
  counts.name = status->name();
  for (const v1::Space& space : status->spaces()) {
    if (Matches(space, space_)) counts.hit_peer += space.account().hit_peer();
  }
  for (const v1::ClusterPeer& peer : status->cluster().peers()) {
    counts.pulls += peer.pulls();
    counts.pull.pages += peer.pages_pulled();
    counts.pull.bytes += peer.bytes_pulled();
    counts.pull.failed += peer.pages_failed() + peer.pages_bad();
    counts.pull.seconds += static_cast<double>(peer.pull_micros()) / 1e6;
  }
  for (const v1::Counter& counter : status->counters()) {
    if (counter.name() == "fetches_declined") counts.pull.declined += counter.value();
  }
  return counts;
}

absl::Status NodeWatch::Start() {
  absl::StatusOr<NodeCounts> now = Read();
  if (!now.ok()) return now.status();
  before_ = last_ = *std::move(now);
  return absl::OkStatus();
}

absl::Status NodeWatch::Update() {
  absl::StatusOr<NodeCounts> now = Read();
  if (!now.ok()) return now.status();
  if (now->boot_id != last_.boot_id) {
    earlier_ = Total();
    before_ = NodeCounts();
    restarted_ = true;
  }
  last_ = *std::move(now);
  return absl::OkStatus();
}

NodeCounts NodeWatch::Total() const {
  NodeCounts total = Added(before_, last_);
  total.hit_peer += earlier_.hit_peer;
  total.pulls += earlier_.pulls;
  total.pull += earlier_.pull;
  return total;
}

absl::StatusOr<NodeCounts> NodeWatch::Since() {
  const absl::Status read = Update();
  if (!read.ok()) return read;
  return Total();
}

std::optional<int64_t> NodeWatch::TakePullNanos() {
  const NodeCounts before = Total();
  if (!Update().ok()) return std::nullopt;
  const NodeCounts added = Added(before, Total());
  if (added.pulls == 0) return std::nullopt;
  return static_cast<int64_t>(added.pull.seconds * 1e9 / static_cast<double>(added.pulls));
}

}  // namespace pando::ctl
