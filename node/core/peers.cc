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
// A feed says something every seven seconds (Advertiser::Options::digest_every).
constexpr Nanos kSilence = 16 * kSecond;
constexpr Nanos kViewOutlives = 30 * kSecond;
constexpr uint64_t kSweepPlaces = 4096;

std::string Hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << value;
  return std::move(out).str();
}

}  // namespace

Nanos Peers::Backoff(Nanos first, Nanos most, uint32_t failures, PeerId peer) {
  const Nanos doubled = first << std::min(failures, 10u);
  return std::min(doubled, most) + static_cast<Nanos>(peer.value() % 16) * 10 * kMillisecond;
}

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
  if (leaving_) return true;
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
    if (peer->boot != BootId()) Over(id, peer);  // the address led to another once
    peer->totals.reset();
    peer->state = PeerState::kSelf;
    peer->name = hello.node_name;
    peer->why.clear();
    WakeAt(id, peer, context_->now + kSelfRetry);
    return;
  }
  if (answer.code == PeerCode::kBusy) return Lose(id, peer, "it is busy: " + answer.message);
  if (answer.code != PeerCode::kOk) return Refuse(id, peer, "it refused: " + answer.message);
  if (auto problem = CheckHello(mine_, hello)) return Refuse(id, peer, *problem);
  if (auto problem = CheckTwice(*peer, hello)) return Refuse(id, peer, *problem);
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

// A node counts once, however many addresses lead to it; and a name is one node's.
std::optional<std::string> Peers::CheckTwice(const Peer& peer, const PeerHello& hello) const {
  for (const auto& [id, other] : peers_) {
    if (other.get() == &peer || other->stream == 0) continue;
    if (other->boot == hello.boot) {
      return Text("it is ", Quotable(hello.node_name), ", which is connected at ", other->address,
                  ": name each node once in --peers");
    }
    if (other->name == hello.node_name) {
      return Text("another node named ", Quotable(hello.node_name), " is connected at ",
                  other->address, ": give each node its own --name");
    }
  }
  return std::nullopt;
}

void Peers::Refuse(PeerId id, Peer* peer, const std::string& why) {
  if (peer->why != why) {
    context_->Log(LogLine::Level::kWarning, "peer.incompatible",
                  {{"address", peer->address}, {"why", Quotable(why, 400)}});
  }
  Over(id, peer);
  peer->totals.reset();
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
  FeedVerdict verdict =
      arrived.piece ? peer->reader.Apply(*arrived.piece) : peer->reader.Malformed();
  // Grants are asked of the life that its hello named.
  if (verdict == FeedVerdict::kApplied && peer->reader.boot() != peer->boot) {
    verdict = FeedVerdict::kOtherBoot;
  }
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

// This life of it is over. What it counted stands until another life tells.
void Peers::Over(PeerId id, Peer* peer) {
  CloseStream(id, peer);
  peer->reader.Lost();
  peer->boot = BootId();
  peer->rate = peer->latency = 0;
  peer->broken = 0;
  peer->closed_until = 0;
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

}  // namespace pando
