#include "node/core/peers.h"

#include <algorithm>
#include <iomanip>
#include <limits>
#include <sstream>

#include "node/core/hello.h"
#include "node/core/problem.h"
#include "radix/base/check.h"

namespace pando {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kSecond = 1'000 * kMillisecond;
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

constexpr Nanos kHelloTimeout = 2 * kSecond;
constexpr Nanos kGoodbyeTimeout = 1 * kSecond;
constexpr Nanos kBackoffFirst = 200 * kMillisecond;
constexpr Nanos kBackoffMost = 10 * kSecond;
constexpr Nanos kRefusedRetry = 30 * kSecond;
constexpr Nanos kSelfRetry = 300 * kSecond;
// A feed says something every five seconds (Advertiser::Options::digest_every).
constexpr Nanos kSilence = 16 * kSecond;
constexpr Nanos kViewOutlives = 30 * kSecond;
constexpr Nanos kBreakerFirst = 1 * kSecond;
constexpr Nanos kBreakerMost = 60 * kSecond;
constexpr Nanos kMeasureBelieved = 30 * kSecond;
// A shorter pull says how long a round trip takes, and nothing of the rate.
constexpr uint64_t kBytesToMeasure = 1ull << 20;
constexpr double kLastWeight = 0.3;  // of the last pull
constexpr uint64_t kSweepPlaces = 4096;

std::string Hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << value;
  return std::move(out).str();
}

double Smooth(double before, double last) {
  return before <= 0 ? last : before + kLastWeight * (last - before);
}

// Twice as long after each failure; a little apart for different peers.
Nanos Backoff(Nanos first, Nanos most, uint32_t failures, PeerId peer) {
  const Nanos doubled = first << std::min(failures, 10u);
  return std::min(doubled, most) + static_cast<Nanos>(peer.value() % 16) * 10 * kMillisecond;
}

}  // namespace

void Peers::Start(const ClusterStarted& started, PeerHello mine) {
  PANDO_CHECK(!this->started()) << "the cluster is started twice";
  held_ = std::make_unique<Directory>(started.seed);
  prefilling_ = std::make_unique<Directory>(started.seed + 1);
  mine_ = std::move(mine);
}

// ---- Who there is

void Peers::Take(const PeersChanged& changed) {
  if (!started()) return;
  std::set<PeerId> now;
  for (const PeersChanged::Peer& peer : changed.peers) {
    now.insert(peer.id);
    auto [it, added] = peers_.try_emplace(peer.id);
    if (!added) continue;
    it->second = std::make_unique<Peer>(peer.id, peer.address, held_.get(), prefilling_.get());
    WakeAt(peer.id, it->second.get(), context_->now);
  }
  for (auto it = peers_.begin(); it != peers_.end();) {
    const auto next = std::next(it);
    if (!now.contains(it->first)) {
      Peer* peer = it->second.get();
      Over(it->first, peer);
      hellos_.erase(peer->hello);
      WakeAt(it->first, peer, kNever);
      peers_.erase(it);
    }
    it = next;
  }
}

void Peers::WakeAt(PeerId id, Peer* peer, Nanos when) {
  wakes_.erase({peer->wake, id});
  peer->wake = when;
  if (when != kNever) wakes_.emplace(when, id);
}

// ---- Hello

void Peers::SayHello(PeerId id, Peer* peer) {
  peer->hello = NextCall();
  hellos_.emplace(peer->hello, id);
  context_->outputs->emplace_back(
      AskPeer{id, peer->hello, context_->now + kHelloTimeout, HelloRequest{mine_}});
  WakeAt(id, peer, kNever);
}

bool Peers::Take(PeerAnswered& answered) {
  const auto it = hellos_.find(answered.call);
  if (it == hellos_.end()) return false;
  const PeerId id = it->second;
  Peer* peer = peers_.at(id).get();
  hellos_.erase(it);
  peer->hello = 0;
  auto* answer = answered.answer ? std::get_if<HelloAnswer>(&*answered.answer) : nullptr;
  if (answer == nullptr) {
    Lose(id, peer, answered.why.empty() ? "an answer that is none" : answered.why);
  } else {
    Greeted(id, peer, *answer);
  }
  return true;
}

void Peers::Greeted(PeerId id, Peer* peer, const HelloAnswer& answer) {
  peer->heard = context_->now;
  peer->lost = 0;
  const PeerHello& hello = answer.hello;
  if (hello.boot == mine_.boot) {
    peer->state = PeerState::kSelf;
    peer->name = hello.node_name;
    peer->why.clear();
    WakeAt(id, peer, context_->now + kSelfRetry);
    return;
  }
  if (answer.code != PeerCode::kOk) return Refuse(id, peer, "it refused: " + answer.message);
  if (auto problem = CheckHello(mine_, hello)) return Refuse(id, peer, *problem);
  if (peer->boot != hello.boot && peer->boot != BootId()) Over(id, peer);
  const bool news = peer->state != PeerState::kConnected || peer->boot != hello.boot;
  peer->state = PeerState::kConnected;
  peer->boot = hello.boot;
  peer->name = hello.node_name;
  peer->data_address = hello.data_address;
  peer->why.clear();
  if (news) {
    context_->Log(
        LogLine::Level::kInfo, "peer.connected",
        {{"peer", peer->name}, {"address", peer->address}, {"boot_id", Hex(peer->boot.value())}});
  }
  OpenFeed(id, peer);
}

void Peers::Refuse(PeerId id, Peer* peer, const std::string& why) {
  if (peer->why != why) {
    context_->Log(LogLine::Level::kWarning, "peer.incompatible",
                  {{"address", peer->address}, {"why", Quotable(why, 400)}});
  }
  Over(id, peer);
  peer->state = PeerState::kIncompatible;
  peer->why = why;
  WakeAt(id, peer, context_->now + kRefusedRetry);
}

// ---- Feed

void Peers::OpenFeed(PeerId id, Peer* peer) {
  peer->stream = ++last_stream_;
  streams_.emplace(peer->stream, id);
  FeedRequest request{mine_.boot, BootId(), 0};
  if (peer->reader.complete() && peer->reader.boot() == peer->boot) {
    request.boot = peer->boot;
    request.sequence = peer->reader.sequence();
  }
  context_->outputs->emplace_back(pando::OpenFeed{id, peer->stream, request});
  peer->heard = context_->now;
  WakeAt(id, peer, context_->now + kSilence);
}

Peers::Peer* Peers::FindStream(uint64_t stream, PeerId* id) {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return nullptr;
  *id = it->second;
  return peers_.at(*id).get();
}

void Peers::Take(FeedArrived& arrived) {
  PeerId id;
  Peer* peer = FindStream(arrived.stream, &id);
  if (peer == nullptr) return;
  peer->heard = context_->now;
  if (arrived.totals) {
    peer->totals = arrived.totals;
    peer->totals_at = context_->now;
  }
  const FeedVerdict verdict =
      arrived.piece ? peer->reader.Apply(*arrived.piece) : peer->reader.Malformed();
  news_.moved.push_back(id);
  switch (verdict) {
    case FeedVerdict::kApplied:
      if (peer->reader.complete()) peer->failures = 0;
      [[fallthrough]];
    case FeedVerdict::kRepeated:
      WakeAt(id, peer, context_->now + kSilence);
      return;
    case FeedVerdict::kOtherBoot:
      CloseStream(id, peer);
      return Lose(id, peer, "it began another life");
    default:  // kWaiting too: a stream begins with a snapshot, if one is wanted
      CloseStream(id, peer);
      ++context_->counters.feeds_broken;
      return Lose(id, peer, "its feed had a gap, a wrong digest or no sense: taken anew");
  }
}

void Peers::Take(const FeedEnded& ended) {
  PeerId id;
  Peer* peer = FindStream(ended.stream, &id);
  if (peer == nullptr) return;
  streams_.erase(ended.stream);
  peer->stream = 0;
  peer->reader.Interrupted();
  news_.moved.push_back(id);
  Lose(id, peer, ended.why.empty() ? "it ended its feed" : ended.why);
}

void Peers::CloseStream(PeerId id, Peer* peer) {
  if (peer->stream == 0) return;
  context_->outputs->emplace_back(CloseFeed{peer->stream});
  streams_.erase(peer->stream);
  peer->stream = 0;
  peer->reader.Interrupted();
  news_.moved.push_back(id);
}

// Hello or feed failed: all begins again with a hello, a while later.
void Peers::Lose(PeerId id, Peer* peer, const std::string& why) {
  if (peer->failures == 0) {
    context_->Log(LogLine::Level::kWarning, "peer.lost",
                  {{"peer", peer->name}, {"address", peer->address}, {"why", Quotable(why, 400)}});
  }
  peer->why = why;
  if (peer->lost == 0) peer->lost = context_->now;
  if (peer->state != PeerState::kIncompatible) peer->state = PeerState::kConnecting;
  WakeAt(id, peer, context_->now + Backoff(kBackoffFirst, kBackoffMost, peer->failures++, id));
}

// This life of it is over.
void Peers::Over(PeerId id, Peer* peer) {
  CloseStream(id, peer);
  peer->reader.Lost();
  peer->boot = BootId();
  peer->rate = peer->latency = 0;
  peer->broken = 0;
  peer->closed_until = 0;
  peer->totals.reset();
  news_.over.push_back(id);
  news_.moved.push_back(id);
}

// ---- Time

void Peers::Look(PeerId id, Peer* peer) {
  if (peer->stream != 0) {  // silent for too long
    CloseStream(id, peer);
    return Lose(id, peer, "silence");
  }
  if (peer->lost != 0 && peer->boot != BootId() && context_->now - peer->lost > kViewOutlives) {
    Over(id, peer);
  }
  SayHello(id, peer);
}

void Peers::Turn() {
  if (!started() || leaving_) return;
  while (!wakes_.empty() && wakes_.begin()->first <= context_->now) {
    const PeerId id = wakes_.begin()->second;
    Look(id, peers_.at(id).get());
  }
  held_->Sweep(kSweepPlaces);
  prefilling_->Sweep(kSweepPlaces);
}

void Peers::Left(BootId boot) {
  for (auto& [id, peer] : peers_) {
    if (peer->boot != boot || boot == BootId()) continue;
    Over(id, peer.get());
    Lose(id, peer.get(), "it said goodbye");
  }
}

void Peers::Leave() {
  if (!started() || leaving_) return;
  leaving_ = true;
  for (auto& [id, peer] : peers_) {
    const bool told = peer->state == PeerState::kConnected;
    Over(id, peer.get());
    WakeAt(id, peer.get(), kNever);
    if (!told) continue;
    context_->outputs->emplace_back(AskPeer{id, NextCall(), context_->now + kGoodbyeTimeout,
                                            GoodbyeRequest{mine_.boot, "the node is draining"}});
  }
}

Nanos Peers::next_deadline() const {
  return wakes_.empty() || leaving_ ? kNever : wakes_.begin()->first;
}

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

std::vector<PeerStatus> Peers::status() const {
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
    if (peer->heard != 0) status.heard_ago = context_->now - peer->heard;
    if (peer->closed_until > context_->now) status.closed_for = peer->closed_until - context_->now;
    status.bytes_per_s = peer->rate;
    status.totals = peer->totals;
    status.totals_ago = context_->now - peer->totals_at;
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
