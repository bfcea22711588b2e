// Peers' part for who fetches: whom to ask, what came of it, what is known.
#include <algorithm>
#include <limits>

#include "node/core/peers.h"
#include "node/core/problem.h"

namespace pando {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kSecond = 1'000 * kMillisecond;
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

constexpr Nanos kBreakerFirst = 1 * kSecond;
constexpr Nanos kBreakerMost = 60 * kSecond;
constexpr Nanos kMeasureBelieved = 30 * kSecond;
// A shorter pull says how long a round trip takes, and nothing of the rate.
constexpr uint64_t kBytesToMeasure = 1ull << 20;
constexpr double kLastWeight = 0.3;  // of the last pull

double Smooth(double before, double last) {
  return before <= 0 ? last : before + kLastWeight * (last - before);
}

}  // namespace

// ---- Whom to ask

bool Peers::Connected(PeerId id, BootId boot) const {
  const auto it = peers_.find(id);
  return it != peers_.end() && it->second->boot == boot && boot != BootId();
}

std::vector<Peers::Holder> Peers::Holders(std::span<const uint64_t> keys) const {
  std::vector<Holder> holders;
  if (!AnyHolds() || keys.empty()) return holders;
  std::vector<PeerDepth> depths;
  held_->Lookup(keys, 0, &depths);
  for (const PeerDepth& depth : depths) {
    const Peer& peer = *peers_.at(depth.peer);
    if (peer.data_address.empty() || peer.boot == BootId()) continue;
    if (peer.closed_until > context_->now) continue;
    holders.push_back({depth.peer, depth.depth});
  }
  std::stable_sort(holders.begin(), holders.end(), [this](const Holder& a, const Holder& b) {
    if (a.blocks != b.blocks) return a.blocks > b.blocks;
    return peers_.at(a.peer)->rate > peers_.at(b.peer)->rate;
  });
  return holders;
}

std::optional<PeerId> Peers::MakerOf(uint64_t key) const {
  if (!AnyMakes()) return std::nullopt;
  std::vector<PeerDepth> makers;
  prefilling_->Lookup({&key, 1}, 0, &makers);
  std::optional<PeerId> first;
  for (const PeerDepth& maker : makers) {
    const Peer& peer = *peers_.at(maker.peer);
    if (peer.stream == 0 || peer.data_address.empty()) continue;
    if (!first || peer.name < peers_.at(*first)->name) first = maker.peer;
  }
  return first;
}

// ---- What came of it

std::optional<Nanos> Peers::PullTime(PeerId id, double bytes) const {
  const Peer& peer = *peers_.at(id);
  const bool measured = peer.rate > 0 || peer.latency > 0;
  if (!measured || context_->now - peer.measured_at > kMeasureBelieved) return std::nullopt;
  const double pulling = peer.rate > 0 ? bytes / peer.rate * 1e9 : 0;
  return static_cast<Nanos>(peer.latency + pulling);
}

void Peers::CountGrant(PeerId id, PeerCode code) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  PeerStatus& counted = it->second->counted;
  ++counted.grants_asked;
  counted.grants_missed += code == PeerCode::kMiss ? 1 : 0;
  counted.grants_refused += code != PeerCode::kMiss && code != PeerCode::kOk ? 1 : 0;
}

void Peers::CountPull(PeerId id, const Pulled& pulled) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  Peer& peer = *it->second;
  ++peer.counted.pulls;
  peer.counted.pages_pulled += pulled.pages;
  peer.counted.bytes_pulled += pulled.bytes;
  peer.counted.pages_bad += pulled.bad;
  peer.counted.pages_failed += pulled.failed;
  peer.counted.pull_micros += static_cast<uint64_t>(std::max<Nanos>(pulled.took, 0)) / 1000;
  if (!pulled.warm || pulled.took <= 0 || pulled.bytes == 0) return;
  const auto took = static_cast<double>(pulled.took);
  if (pulled.bytes < kBytesToMeasure) {
    peer.latency = Smooth(peer.latency, took);
  } else {
    peer.rate = Smooth(peer.rate, static_cast<double>(pulled.bytes) * 1e9 / took);
    peer.latency = std::min(peer.latency, took);  // it cannot be longer than all of this
  }
  peer.measured_at = context_->now;
}

void Peers::Failed(PeerId id, const std::string& why) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  Peer& peer = *it->second;
  if (peer.closed_until > context_->now) return;  // what ran at the same time: one failure
  const Nanos closed = Backoff(kBreakerFirst, kBreakerMost, peer.broken++, id);
  peer.closed_until = context_->now + closed;
  context_->Log(
      LogLine::Level::kWarning, "peer.breaker_open",
      {{"peer", peer.name}, {"why", Quotable(why, 400)}, {"for_ms", Text(closed / kMillisecond)}});
}

void Peers::Succeeded(PeerId id) {
  const auto it = peers_.find(id);
  if (it != peers_.end()) it->second->broken = 0;
}

// ---- Reads

uint64_t Peers::directory_bytes() const {
  return held_ == nullptr ? 0 : held_->memory().value() + prefilling_->memory().value();
}

std::vector<PeerStatus> Peers::status(Nanos now) const {
  std::vector<PeerStatus> all;
  for (const auto& [id, peer] : peers_) {
    PeerStatus status = peer->counted;
    status.peer = id;
    status.address = peer->address;
    status.name = peer->name;
    status.boot = peer->boot;
    status.state = peer->state;
    status.why = peer->why;
    status.view_complete = peer->reader.complete();
    status.blocks = held_->blocks(id);
    status.prefilling = prefilling_->blocks(id);
    if (peer->heard != 0) status.heard_ago = now - peer->heard;
    if (peer->closed_until > now) status.closed_for = peer->closed_until - now;
    status.bytes_per_s = peer->rate;
    status.totals = peer->totals;
    status.totals_ago = now - peer->totals_at;
    all.push_back(std::move(status));
  }
  return all;
}

std::vector<std::string> Peers::Holding(uint64_t key) const {
  std::vector<std::string> names;
  if (!started()) return names;
  std::vector<PeerDepth> holders;
  held_->Lookup({&key, 1}, 0, &holders);
  for (const PeerDepth& holder : holders) names.push_back(peers_.at(holder.peer)->name);
  return names;
}

std::string Peers::SelfCheck() const {
  if (!started()) return "";
  if (std::string broken = held_->CheckInvariants(); !broken.empty()) return broken;
  if (std::string broken = prefilling_->CheckInvariants(); !broken.empty()) return broken;
  for (const auto& [id, peer] : peers_) {
    if (peer->wake != kNever && !wakes_.contains({peer->wake, id})) return "a peer's wake is lost";
    if (peer->stream != 0 && !streams_.contains(peer->stream)) return "a peer's stream is lost";
    if (peer->hello != 0 && !hellos_.contains(peer->hello)) return "a peer's hello is lost";
    const bool waits = peer->wake != kNever || peer->hello != 0;
    if (!waits && !leaving_) return "a peer for which nothing will ever be done again";
  }
  return "";
}

}  // namespace pando
