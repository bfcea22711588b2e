#include "node/runtime/metrics_cluster.h"

#include <array>
#include <string>
#include <vector>

namespace pando::runtime {
namespace {

using prometheus::MetricType;

double Seconds(Nanos nanos) {
  return static_cast<double>(nanos) / 1e9;
}

// One family of one value a peer.
struct PeerMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const PeerStatus&);
};

const std::array kPeerMetrics{
    PeerMetric{"peer_connected", "1 while the peer and this node have said hello, else 0",
               MetricType::Gauge,
               [](const PeerStatus& p) { return p.state == PeerState::kConnected ? 1.0 : 0.0; }},
    PeerMetric{"peer_view_complete",
               "1 if all that the peer tells is known here, 0 before its first snapshot",
               MetricType::Gauge, [](const PeerStatus& p) { return p.view_complete ? 1.0 : 0.0; }},
    PeerMetric{"peer_blocks", "Blocks that the peer told it holds", MetricType::Gauge,
               [](const PeerStatus& p) { return static_cast<double>(p.blocks); }},
    PeerMetric{"peer_prefilling_blocks", "Blocks that the peer told it is computing",
               MetricType::Gauge,
               [](const PeerStatus& p) { return static_cast<double>(p.prefilling); }},
    PeerMetric{"peer_breaker_open_seconds",
               "How long no page will be asked of the peer, after it failed; 0: it is asked",
               MetricType::Gauge,
               [](const PeerStatus& p) { return Seconds(p.closed_for.value_or(0)); }},
    PeerMetric{"peer_pull_rate_bytes_per_second",
               "Bytes a second that pulls from the peer were last measured at; 0: not yet",
               MetricType::Gauge, [](const PeerStatus& p) { return p.bytes_per_s; }},
    PeerMetric{"peer_pulls_total", "Pulls from the peer that ended, well or not",
               MetricType::Counter,
               [](const PeerStatus& p) { return static_cast<double>(p.pulls); }},
    PeerMetric{"peer_pull_bytes_total", "Bytes of pages that pulls from the peer brought",
               MetricType::Counter,
               [](const PeerStatus& p) { return static_cast<double>(p.bytes_pulled); }},
    PeerMetric{"peer_pull_seconds_total", "Seconds that pulls from the peer took, each by itself",
               MetricType::Counter,
               [](const PeerStatus& p) { return static_cast<double>(p.pull_micros) / 1e6; }},
};

MetricLabels LabelsOf(const PeerStatus& peer) {
  return {{"peer", peer.name}, {"address", peer.address}};
}

void Value(const PeerStatus& peer, const char* label, const char* kind, uint64_t value,
           Families* out) {
  MetricLabels labels = LabelsOf(peer);
  labels.push_back({label, kind});
  out->Value(value, std::move(labels));
}

void AddPeers(const std::vector<const PeerStatus*>& peers, Families* out) {
  for (const PeerMetric& metric : kPeerMetrics) {
    out->Add(metric.name, metric.help, metric.type);
    for (const PeerStatus* peer : peers) out->Real(metric.value(*peer), LabelsOf(*peer));
  }
  out->Add("peer_heard_seconds",
           "The age of this node's view of the peer: since the last message of its; none: never",
           MetricType::Gauge);
  for (const PeerStatus* peer : peers) {
    if (peer->heard_ago) out->Real(Seconds(*peer->heard_ago), LabelsOf(*peer));
  }
  out->Add("peer_grants_asked_total",
           "Requests for pages that the peer answered, by answer: given, missed (it had not, or no "
           "longer, what it had told), refused",
           MetricType::Counter);
  for (const PeerStatus* peer : peers) {
    const uint64_t others = peer->grants_missed + peer->grants_refused;
    Value(*peer, "answer", "given", peer->grants_asked - others, out);
    Value(*peer, "answer", "missed", peer->grants_missed, out);
    Value(*peer, "answer", "refused", peer->grants_refused, out);
  }
  out->Add("peer_pull_pages_total",
           "Pages asked of the peer, by outcome: arrived, bad (another checksum than promised), "
           "failed (did not arrive)",
           MetricType::Counter);
  for (const PeerStatus* peer : peers) {
    Value(*peer, "outcome", "arrived", peer->pages_pulled, out);
    Value(*peer, "outcome", "bad", peer->pages_bad, out);
    Value(*peer, "outcome", "failed", peer->pages_failed, out);
  }
}

}  // namespace

void AddWire(const WireCounters& wire, Families* out) {
  out->Counter("peer_calls_total", "Calls of peers that were let in", wire.control.calls);
  out->Counter("peer_feeds_total", "Feeds that peers opened here", wire.control.feeds);
  out->Add("peer_calls_refused_total",
           "Calls of peers that were refused, by reason: busy (no room), malformed (no message, or "
           "one beyond a limit)",
           MetricType::Counter);
  out->Value(wire.control.refused_busy, {{"reason", "busy"}});
  out->Value(wire.control.refused_malformed, {{"reason", "malformed"}});
  out->Counter("peer_calls_gone_total", "Callers that went away before their answer, or in a feed",
               wire.control.gone);
  out->Counter("peer_connections_refused_total",
               "Connections to the peer port that were closed at once: there are too many",
               wire.control.connections_refused);
  const TransferCounters& data = wire.data;
  out->Counter("transfer_sent_pages_total", "Pages sent to peers", data.pages_sent);
  out->Counter("transfer_sent_bytes_total", "Bytes of pages sent to peers", data.bytes_sent);
  out->Add("transfer_refused_total",
           "What was asked of the data port and refused: of a grant that is not known, a page that "
           "is not granted or too many at once, a message that means nothing here",
           MetricType::Counter);
  out->Value(data.refused_grants, {{"what", "grant"}});
  out->Value(data.refused_pages, {{"what", "page"}});
  out->Value(data.messages_refused, {{"what", "message"}});
  out->Counter("transfer_connections_total", "Connections of the data port, both ways",
               data.connections);
  out->Add("transfer_connections_closed_total",
           "Connections of the data port that ended, by cause: stalled (no progress for a while), "
           "unread (answers pile up), other",
           MetricType::Counter);
  out->Value(data.connections_stalled, {{"cause", "stalled"}});
  out->Value(data.connections_unread, {{"cause", "unread"}});
  out->Value(data.connections_closed - data.connections_stalled - data.connections_unread,
             {{"cause", "other"}});
  out->Counter("transfer_connections_refused_total", "Connections refused: there are too many",
               data.connections_refused);
  out->Counter("transfer_overloaded_total", "Offers and pulls of this node above its own limits",
               data.offers_refused + data.pulls_refused);
  out->Counter("transfer_registrations_failed_total",
               "Extents that the network hardware did not take; they work, but slowly",
               data.registrations_failed);
  out->Counter("transfer_restarts_total",
               "Times that the process which moves pages ended and was started again: it ends when "
               "somebody sends its ports what is no message",
               data.restarts);
}

void AddCluster(const ClusterStatus& cluster, Families* out) {
  std::array<uint64_t, 4> by_state{};
  std::vector<const PeerStatus*> others;
  for (const PeerStatus& peer : cluster.peers) {
    ++by_state[static_cast<size_t>(peer.state)];
    if (peer.state != PeerState::kSelf) others.push_back(&peer);
  }
  out->Add("peers", "Configured addresses of peers, by state; self: the address is this node's",
           MetricType::Gauge);
  out->Value(by_state[static_cast<size_t>(PeerState::kConnecting)], {{"state", "connecting"}});
  out->Value(by_state[static_cast<size_t>(PeerState::kConnected)], {{"state", "connected"}});
  out->Value(by_state[static_cast<size_t>(PeerState::kIncompatible)], {{"state", "incompatible"}});
  out->Value(by_state[static_cast<size_t>(PeerState::kSelf)], {{"state", "self"}});
  out->Gauge("granted_bytes", "Bytes of pages that peers may pull now", cluster.granted_bytes);
  out->Gauge("guests", "Nodes that have said hello to this one", cluster.guests);
  out->Gauge("feeds", "Feeds of this node that peers have open", cluster.feeds);
  out->Gauge("told_blocks", "Blocks that this node tells its peers it holds", cluster.told_blocks);
  out->Gauge("directory_blocks", "Blocks that peers told they hold, each once a peer",
             cluster.directory_blocks);
  out->Gauge("directory_bytes", "Bytes of memory of the directory of what peers told",
             cluster.directory_bytes);
  out->Gauge("fetches_open", "Fetches from peers that are under way", cluster.fetches);
  AddPeers(others, out);
}

}  // namespace pando::runtime
