// The service `Peer` (proto/pando/v1/peer.proto) on TCP: what peers ask of this node.
//
//   peer ──► call ──► decode ──► deliver(PeerAsks)           owner: NodeCore::Step
//        ◄── answer ◄── encode ◄──────────── Take(AnswerPeer) ◄──┘
//   peer ──► feed ──► deliver(FeedAsked) ... Take(SendFeed) ─► written ─► deliver(FeedReady)
//
// Invariants:
//  1. It decides nothing but whether there is room, and whether a message is one.
//  2. Bounded: above `calls_max` calls, `feeds_max` feeds, or limits::kPeerMessageBytes in a
//     message the caller gets RESOURCE_EXHAUSTED; a feed has one message on its way at a time.
//  3. A call lasts no longer than its deadline, which is at most limits::kPeerCallLife away. A
//     caller that goes away frees its call at once; what the owner then answers is dropped.
//  4. Of a feed that was delivered as asked, FeedDropped is delivered once, unless EndFeed came
//     before.
//  5. A malformed message is answered and counted, and nothing else notices.
//
// Threads: Start, Take and the destructor on the owner thread, none of which blocks but the
// destructor, for a moment; `deliver` is called on the server's thread and must not block. What is
// delivered and not yet stepped is bounded by 2.
#ifndef PANDO_NODE_CONTROL_PEER_SERVER_H_
#define PANDO_NODE_CONTROL_PEER_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "node/core/cluster/limits.h"
#include "node/core/node_core.h"

namespace pando::control {

struct PeerServerCounters {  // since start
  uint64_t calls = 0, feeds = 0;
  uint64_t refused_busy = 0;         // there was no room
  uint64_t refused_malformed = 0;    // no message, or one that breaks a limit
  uint64_t gone = 0;                 // callers that went away before their answer, or within a feed
  uint64_t connections_refused = 0;  // closed at once: there are too many
};

class PeerServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";  // numeric, IPv6 in brackets; port 0: any
    uint32_t calls_max = limits::kPeerCalls, feeds_max = limits::kPeerFeeds;
    uint32_t connections_max = limits::kPeerConnections;
    std::function<void(Input)> deliver = nullptr;
  };

  static absl::StatusOr<std::unique_ptr<PeerServer>> Start(Options options);
  // Ends all calls and feeds: their callers are told.
  ~PeerServer();
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  // `listen` with the real port.
  const std::string& address() const;

  void Take(AnswerPeer answer);
  void Take(SendFeed send);
  void Take(EndFeed end);

  PeerServerCounters counters() const;  // any thread

 private:
  struct Impl;
  explicit PeerServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_SERVER_H_
