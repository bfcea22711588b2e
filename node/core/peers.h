// Peers: the other nodes as this one sees them: said hello to, listened to, measured, avoided.
//
//   connecting ──hello──► connected ──feed──► its view in the directory
//       ▲  │ refused: incompatible, asked again later; its own boot id: self
//       └──┴── feed or hello fails, silence ── backoff
//
//   Holders(keys)   who can give the first blocks of these, best first
//   MakerOf(key)    who computes this block, by the lowest node name (of crossed intents all third
//                   parties are told the same one)
//
//  1. A lookup asks nobody; the directory is what peers told (FAULTS E1, E3, E4).
//  2. Each peer has a circuit breaker: after a failed fetch it is not asked for pages for a while,
//     longer each time; the others do not notice (FAULTS D4).
//  3. A view outlives a broken stream, and is dropped with another life of the peer, or when the
//     peer cannot be reached for long. What a peer computes counts only while its stream lives.
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_PEERS_H_
#define PANDO_NODE_CORE_PEERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node/core/cluster/directory.h"
#include "node/core/cluster/feed_reader.h"
#include "node/core/context.h"
#include "node/core/peer_messages.h"

namespace pando {

// What happened to peers in a step, for those who wait for them.
struct PeerNews {
  std::vector<PeerId> over;   // this life of it: what it had granted is void
  std::vector<PeerId> moved;  // what it has or computes has changed
};

class Peers {
 public:
  struct Holder {
    PeerId peer;
    uint32_t blocks = 0;
  };

  explicit Peers(CoreContext* context) : context_(context) {}

  void Start(const ClusterStarted& started, PeerHello mine);
  bool started() const { return held_ != nullptr; }
  // How this node introduces itself, but for its spaces.
  const PeerHello& mine() const { return mine_; }

  void Take(const PeersChanged& changed);
  // An answer to a hello; false: that call was none.
  bool Take(PeerAnswered& answered);
  void Take(FeedArrived& arrived);
  void Take(const FeedEnded& ended);
  // What is due: hellos, feeds to be opened again, silence; a small step of the directories' sweep.
  void Turn();
  // This life of a peer leaves.
  void Left(BootId boot);
  // The node ends: says goodbye to all.
  void Leave();
  PeerNews TakeNews() { return std::exchange(news_, {}); }

  // Who can be asked for the first of these blocks now, and for how many; the deepest first, then
  // the fastest.
  std::vector<Holder> Holders(std::span<const uint64_t> keys) const;
  std::optional<PeerId> MakerOf(uint64_t key) const;
  // Where nothing can be pulled, nobody holds or makes anything.
  bool Pulls() const { return started() && !mine_.data_address.empty(); }
  bool AnyMakes() const { return Pulls() && prefilling_->holder_blocks() > 0; }
  bool AnyHolds() const { return Pulls() && held_->holder_blocks() > 0; }

  // For a fetch.
  uint64_t NextCall() { return ++last_call_; }
  BootId boot(PeerId peer) const { return peers_.at(peer)->boot; }
  const std::string& data_address(PeerId peer) const { return peers_.at(peer)->data_address; }
  // Of this life, and it can be asked.
  bool Connected(PeerId peer, BootId boot) const;
  // How long pulling so many bytes takes, by what was measured lately: the latency of short pulls
  // and the rate of long ones. nullopt: nothing was, or too long ago to be believed.
  std::optional<Nanos> PullTime(PeerId peer, double bytes) const;
  void CountGrant(PeerId peer, PeerCode code);
  // A pull that ended, and what came of it.
  struct Pulled {
    uint64_t bytes = 0, pages = 0, bad = 0, failed = 0;
    Nanos took = 0;
    bool warm = false;  // over a connection that was there
  };
  void CountPull(PeerId peer, const Pulled& pulled);
  // It failed to give what it had promised: its breaker opens; or it gave it.
  void Failed(PeerId peer, const std::string& why);
  void Succeeded(PeerId peer);

  Nanos next_deadline() const;
  std::vector<PeerStatus> status(Nanos now) const;
  // The names of those that told that they hold this block, whether or not they can be asked.
  std::vector<std::string> Holding(uint64_t key) const;
  uint64_t directory_blocks() const { return held_ == nullptr ? 0 : held_->holder_blocks(); }
  uint64_t directory_bytes() const;
  std::string SelfCheck() const;

 private:
  struct Peer {
    Peer(PeerId id, std::string at, Directory* held, Directory* prefilling)
        : address(std::move(at)), reader({.peer = id}, held, prefilling) {}

    std::string address;
    std::string name, data_address, why;
    BootId boot;
    PeerState state = PeerState::kConnecting;
    FeedReader reader;
    uint64_t hello = 0;      // the call under way; 0: none
    uint64_t stream = 0;     // the feed; 0: none
    uint32_t failures = 0;   // of hello and feed, in a row
    Nanos wake = 0;          // when something is due for it
    Nanos heard = 0;         // 0: never
    Nanos lost = 0;          // since when it cannot be reached; 0: it can
    uint32_t broken = 0;     // fetches that failed in a row
    Nanos closed_until = 0;  // the breaker
    double rate = 0;         // bytes a second, of long pulls; 0: not measured
    double latency = 0;      // ns, of short pulls; 0: not measured
    Nanos measured_at = 0;
    std::optional<NodeTotals> totals;
    Nanos totals_at = 0;
    PeerStatus counted;  // its counters
  };
  using PeerPtr = std::unique_ptr<Peer>;

  Peer* FindStream(uint64_t stream, PeerId* id);
  void SayHello(PeerId id, Peer* peer);
  void Greeted(PeerId id, Peer* peer, const HelloAnswer& answer);
  std::optional<std::string> CheckTwice(const Peer& peer, const PeerHello& hello) const;
  void OpenFeed(PeerId id, Peer* peer);
  void CloseStream(PeerId id, Peer* peer);
  void Lose(PeerId id, Peer* peer, const std::string& why);
  void Over(PeerId id, Peer* peer);
  void Refuse(PeerId id, Peer* peer, const std::string& why);
  void Look(PeerId id, Peer* peer);
  void WakeAt(PeerId id, Peer* peer, Nanos when);
  // Twice as long after each failure; a little apart for different peers.
  static Nanos Backoff(Nanos first, Nanos most, uint32_t failures, PeerId peer);

  CoreContext* context_;
  std::unique_ptr<Directory> held_, prefilling_;
  std::map<PeerId, PeerPtr> peers_;
  std::set<std::pair<Nanos, PeerId>> wakes_;
  std::map<uint64_t, PeerId> hellos_;   // by call
  std::map<uint64_t, PeerId> streams_;  // by stream
  PeerHello mine_;
  PeerNews news_;
  uint64_t last_call_ = 0, last_stream_ = 0;
  bool leaving_ = false;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_PEERS_H_
