#include "node/control/status_message.h"

#include <algorithm>

#include "node/control/counters.h"
#include "pando/v1/admin.pb.h"

namespace pando::control {
namespace {

void Write(const PageCounts& pages, v1::PageCounts* out) {
  out->set_free(pages.free);
  out->set_reserved(pages.reserved);
  out->set_committed(pages.committed);
  out->set_held(pages.held);
  out->set_receiving(pages.receiving);
  out->set_quarantined(pages.quarantined);
}

void Write(const Account& account, v1::Account* out) {
  out->set_requests(account.requests);
  out->set_prompt(account.prompt);
  out->set_hit_engine(account.hit_engine);
  out->set_hit_device(account.hit_device);
  out->set_hit_host(account.hit_host);
  out->set_hit_disk(account.hit_disk);
  out->set_hit_peer(account.hit_peer);
  out->set_computed(account.computed);
  out->set_failed(account.failed);
}

void Write(const SpaceStatus& space, v1::Space* out) {
  out->set_space(space.space.value());
  out->set_block_tokens(space.shape.block_tokens);
  out->set_page_bytes(space.shape.page_bytes.value());
  out->set_shards(space.shape.shards);
  for (const auto& [name, value] : space.fields) {
    v1::SpaceField* field = out->add_fields();
    field->set_name(name);
    field->set_value(value);
  }
  Write(space.stats.pages, out->mutable_pages());
  out->set_extents(space.stats.extents);
  out->set_runs(space.stats.runs);
  out->set_blocks(space.stats.blocks);
  out->set_evicted_blocks(space.stats.evicted_blocks);
  out->set_dropped_blocks(space.stats.dropped_blocks);
  Write(space.account, out->mutable_account());
}

void Write(const NodeTotals& totals, v1::NodeTotals* out) {
  Write(totals.account, out->mutable_account());
  out->set_pages(totals.pages);
  out->set_pages_free(totals.pages_free);
  out->set_blocks(totals.blocks);
  out->set_uptime_ms(totals.uptime_ms);
}

v1::ClusterPeer::State StateOf(PeerState state) {
  switch (state) {
    case PeerState::kConnecting:
      return v1::ClusterPeer::CONNECTING;
    case PeerState::kConnected:
      return v1::ClusterPeer::CONNECTED;
    case PeerState::kIncompatible:
      return v1::ClusterPeer::INCOMPATIBLE;
    case PeerState::kSelf:
      return v1::ClusterPeer::SELF;
  }
  return v1::ClusterPeer::CONNECTING;
}

uint64_t Millis(Nanos nanos) {
  return static_cast<uint64_t>(std::max<Nanos>(nanos, 0)) / 1'000'000;
}

void Write(const PeerStatus& peer, v1::ClusterPeer* out) {
  out->set_address(peer.address);
  out->set_name(peer.name);
  out->set_boot_id(peer.boot.value());
  out->set_state(StateOf(peer.state));
  out->set_why(peer.why);
  out->set_view_complete(peer.view_complete);
  out->set_blocks(peer.blocks);
  out->set_prefilling(peer.prefilling);
  if (peer.heard_ago) out->set_heard_ago_ms(Millis(*peer.heard_ago));
  if (peer.closed_for) out->set_closed_for_ms(Millis(*peer.closed_for));
  out->set_bytes_per_s(peer.bytes_per_s);
  out->set_grants_asked(peer.grants_asked);
  out->set_grants_missed(peer.grants_missed);
  out->set_grants_refused(peer.grants_refused);
  out->set_pulls(peer.pulls);
  out->set_pages_pulled(peer.pages_pulled);
  out->set_bytes_pulled(peer.bytes_pulled);
  out->set_pages_bad(peer.pages_bad);
  out->set_pages_failed(peer.pages_failed);
  out->set_pull_micros(peer.pull_micros);
  if (peer.totals) {
    Write(*peer.totals, out->mutable_totals());
    out->set_totals_ago_ms(Millis(peer.totals_ago));
  }
}

void Write(const ClusterStatus& cluster, v1::Cluster* out) {
  Write(cluster.totals, out->mutable_totals());
  out->set_granted_bytes(cluster.granted_bytes);
  out->set_guests(cluster.guests);
  out->set_feeds(cluster.feeds);
  out->set_told_blocks(cluster.told_blocks);
  out->set_directory_blocks(cluster.directory_blocks);
  out->set_directory_bytes(cluster.directory_bytes);
  out->set_fetches(cluster.fetches);
  for (const PeerStatus& peer : cluster.peers) Write(peer, out->add_peers());
}

}  // namespace

void WriteStatus(const CoreStatus& status, v1::Status* out) {
  out->set_draining(status.draining);
  Write(status.pages, out->mutable_pages());
  out->set_leases(status.leases);
  out->set_reservations(status.reservations);
  out->set_holds(status.holds);
  out->set_tickets(status.tickets);
  out->set_grants(status.grants);
  out->set_requests(status.requests);
  out->set_sessions(status.sessions);
  out->set_replicas(status.replicas);
  out->set_extents(status.extents);
  out->set_extents_unowned(status.extents_unowned);
  out->set_quarantined_bytes(status.quarantined_bytes);
  Write(status.account, out->mutable_account());
  for (const NamedCounter& counter : kCounters) {
    v1::Counter* named = out->add_counters();
    named->set_name(counter.name);
    named->set_reason(counter.reason);
    named->set_value(counter.value(status.counters));
  }
  for (const SpaceStatus& space : status.spaces) Write(space, out->add_spaces());
  if (status.cluster.started) Write(status.cluster, out->mutable_cluster());
}

void WriteRun(const RunInfo& run, v1::Run* out) {
  out->set_run(run.run.value());
  out->set_parent(run.parent.value());
  out->set_depth_blocks(run.depth_blocks);
  out->set_blocks(run.blocks);
  out->set_complete_blocks(run.complete_blocks);
  out->set_children(run.children);
  out->set_pins(run.pins);
  out->set_scope(run.scope);
}

void WriteHolders(const std::vector<std::string>& holders, v1::Run* out) {
  out->set_peers(static_cast<uint32_t>(holders.size()));
  const size_t named = std::min(holders.size(), kHoldersNamed);
  for (size_t i = 0; i < named; ++i) out->add_peer_names(holders[i]);
}

}  // namespace pando::control
