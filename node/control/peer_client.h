// What this node asks of its peers, by gRPC: a channel of its own for each.
//
//   owner: Take(AskPeer)  ─► encode ─► call ─► decode ─► deliver(PeerAnswered)
//          Take(OpenFeed) ─► feed ─► message ─► deliver(FeedArrived) ... FeedStepped ─► the next
//          one
//                                └─► end ─► deliver(FeedEnded)
//
// Invariants:
//  1. Each AskPeer gets one PeerAnswered, by its deadline, whatever the peer does.
//  2. Each OpenFeed gets one FeedEnded, unless CloseFeed came before.
//  3. A feed's next message is read only after FeedStepped for the last one: what waits for the
//     owner is bounded, and a peer that tells faster than the owner reads is slowed down by TCP.
//  4. A peer that is gone without a word is noticed by pings (peer_transport.h); a lost connection
//     is tried again with backoff, of 3 s at most.
//
// Addresses are numeric: nothing here asks DNS, a proxy or the environment.
//
// Threads: all calls on the owner thread, none of which blocks but the destructor, for a moment;
// `deliver` is called on the client's thread and must not block.
#ifndef PANDO_NODE_CONTROL_PEER_CLIENT_H_
#define PANDO_NODE_CONTROL_PEER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/core/node_core.h"

namespace pando::control {

class PeerClient {
 public:
  explicit PeerClient(std::function<void(Input)> deliver);
  // Gives the calls that run a moment, so that a goodbye is heard; then ends all.
  ~PeerClient();
  PeerClient(const PeerClient&) = delete;
  PeerClient& operator=(const PeerClient&) = delete;

  // From now on. One that is no longer named loses its calls and its feed.
  void SetPeers(std::vector<PeersChanged::Peer> peers);

  void Take(AskPeer ask);
  void Take(OpenFeed open);
  void Take(CloseFeed close);
  // The owner has stepped with the last FeedArrived of this stream.
  void FeedStepped(uint64_t stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_CLIENT_H_
