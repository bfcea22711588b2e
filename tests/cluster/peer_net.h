// PeerNet: what lies between the cores of several nodes in one process: the peer protocol as
// messages in order between each two nodes, and a LoopbackNetwork for pages. Deterministic.
//
//   PeerNet net;
//   net.Add({name, step, page}) ...          every node
//   net.Start(i, boot) ...                   it listens, knows the others and talks to them
//   if (net.Carry(i, &output)) ...           in each node's outputs
//   while (net.Deliver()) {}                 one message, or half a page, a call
//   net.SetTime(now)                         deadlines of calls and pulls
//
// As TCP does it, a partition only delays; a crash and a Break end connections at once. Order is
// kept within a feed; calls pass each other, and are done again, only if `random` and `on_send` are
// set. One thread.
#ifndef PANDO_TESTS_CLUSTER_PEER_NET_H_
#define PANDO_TESTS_CLUSTER_PEER_NET_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "node/core/node_core.h"
#include "transfer/loopback/loopback_engine.h"
#include "transfer/loopback/loopback_network.h"

namespace pando::testing {

class PeerNet {
 public:
  struct Member {
    std::string name;
    std::function<void(Input)> step;
    std::function<std::span<std::byte>(PageId, Bytes)> page;  // where a page of that size lies
  };

  explicit PeerNet(LoopbackOptions options = {}) : transfers_(options) {}

  uint32_t Add(Member member);
  void Start(uint32_t member, BootId boot);
  // Its process is gone: nothing of it is carried any more, and its peers' connections break.
  void Crash(uint32_t member);
  bool up(uint32_t member) const { return nodes_[member].engine != nullptr; }

  // Takes an output that is for peers or the transfer engine; false: it is not.
  bool Carry(uint32_t member, Output* output);
  bool Deliver();
  void SetTime(Nanos now);
  // When something happens without a message: INT64_MAX: never.
  Nanos NextTime() const;
  void Partition(uint32_t a, uint32_t b, bool parted);
  // Their connections end: calls fail, feeds end, what is on its way is lost, pulls break off.
  void Break(uint32_t a, uint32_t b);

  // Below n; chooses what is delivered next, with order kept only within each feed. Else the
  // oldest of two nodes.
  std::function<uint64_t(uint64_t)> random;
  // How a message travels.
  struct Way {
    Nanos delay = 0;
    std::optional<Nanos> again;  // a copy arrives too, so much later, however stale it is then
  };
  std::function<Way(uint32_t from, uint32_t to)> on_send;
  // Changes messages on their way, or drops them (false).
  std::function<bool(uint32_t from, uint32_t to, PeerAnswerBody*)> on_answer;
  std::function<bool(uint32_t from, uint32_t to, SendFeed*)> on_feed;
  std::function<void(uint32_t member, TransferEvent*)> on_event;  // changes what an engine says
  LoopbackNetwork& transfers() { return transfers_; }
  uint64_t asked() const { return asked_; }

 private:
  struct Ask {
    uint64_t call = 0;
    PeerRequestBody body;
  };
  struct Reply {
    uint64_t call = 0;
    PeerAnswerBody body;
  };
  struct Subscribe {
    uint64_t stream = 0;
    FeedRequest request;
  };
  struct Unsubscribe {
    uint64_t stream = 0;
  };
  struct Piece {
    uint64_t serving = 0;
    uint64_t stream = 0;  // the reader's
    SendFeed feed;
  };
  struct End {
    uint64_t serving = 0;
    std::string why;
  };
  struct Message {
    uint32_t from = 0, to = 0;
    std::variant<Ask, Reply, Subscribe, Unsubscribe, Piece, End> content;
    Nanos due = 0;
    bool again = false;  // a copy
  };
  struct Call {
    uint32_t to = 0;
    Nanos deadline = 0;
  };
  struct Feed {  // by the number that its owner knows it by
    uint32_t owner = 0, reader = 0;
    uint64_t stream = 0;  // the reader's
  };
  struct Node {
    Member member;
    std::unique_ptr<LoopbackEngine> engine;
    bool events = false;
    uint64_t lives = 0;
    std::map<uint64_t, Call> calls;  // open, as the requester
  };

  static PeerId IdOf(uint32_t member) { return PeerId(member + 1); }
  static uint32_t MemberOf(PeerId peer) { return peer.value() - 1; }
  void Send(uint32_t from, uint32_t to, decltype(Message::content) content);
  void Arrive(Message message);
  void ArriveAgain(const Message& message);
  template <class Lost>
  void Lose(const Lost& lost);
  void FailCall(uint32_t member, uint64_t call, const std::string& why);
  void EndFeedOf(uint64_t serving, const std::string& why);
  std::map<uint64_t, Feed>::iterator FindFeed(uint32_t reader, uint64_t stream);
  bool TakeEvents();
  std::deque<Message>::iterator NextMessage();
  std::optional<uint64_t> OrderOf(const Message& message) const;
  bool Take(uint32_t member, AnswerPeer* answer);
  bool Take(uint32_t member, SendFeed* feed);
  bool Take(uint32_t member, EndFeed* end);
  bool Take(uint32_t member, AskPeer* ask);
  bool Take(uint32_t member, OpenFeed* open);
  bool Take(uint32_t member, CloseFeed* close);
  bool Take(uint32_t member, OfferPages* offer);
  bool Take(uint32_t member, RevokeOffer* revoke);
  bool Take(uint32_t member, StartPull* pull);
  bool Take(uint32_t member, CancelPull* cancel);
  template <class Other>
  bool Take(uint32_t, Other*) {
    return false;
  }

  LoopbackNetwork transfers_;
  std::deque<Node> nodes_;
  std::deque<Message> messages_;
  std::set<std::pair<uint32_t, uint32_t>> parted_;
  struct Served {
    uint32_t requester = 0;
    uint64_t call = 0;
  };
  std::map<uint64_t, Served> serving_;  // calls, by the number that the owner knows them by
  std::map<uint64_t, Feed> feeds_;
  uint64_t last_ = 0, asked_ = 0;
  Nanos now_ = 0;
};

}  // namespace pando::testing

#endif  // PANDO_TESTS_CLUSTER_PEER_NET_H_
