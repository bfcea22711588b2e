// The other nodes of a fuzzed script, as they are seen by one core: three, each an owner that it
// asks and a guest that asks it; and the transfer engine between them. What they say goes through
// the real codec, with a bit turned over if `odd` is 128 or more. Pages that they send hold what
// their block must, and so must those that they get. One thread.
#ifndef PANDO_TESTS_FUZZ_NEIGHBOURS_H_
#define PANDO_TESTS_FUZZ_NEIGHBOURS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/core/cluster/feed_reader.h"
#include "node/core/peer_messages.h"
#include "tests/fuzz/core_watch.h"
#include "tests/fuzz/script.h"

namespace pando::fuzz {

class Neighbours {
 public:
  explicit Neighbours(CoreWatch* watch);

  void Start();
  void Do(const Operation& operation);
  void Take(Output& output);
  // All that is under way ends, and they know each other no more.
  void Leave();

 private:
  static constexpr uint32_t kNodes = 3;

  struct Node {
    explicit Node(PeerId id) : reader({.peer = id}, &held, &prefilling) {}

    uint64_t life = 0;
    // As an owner: what it tells, and where its feed stands.
    std::set<uint64_t> tells, makes;
    uint64_t sequence = 1;
    uint32_t part = 0;
    // As a guest: what it is told, read as a node reads it.
    Directory held{1}, prefilling{2};
    FeedReader reader;
    uint64_t feed = 0;  // that the reader reads; 0: none
  };
  struct Stream {  // of what a node tells the core
    uint64_t id = 0;
    uint32_t node = 0;
  };
  struct Told {  // of what the core tells a node
    uint32_t node = 0;
    bool sending = false;
  };
  struct Page {
    PageId to;
    sim::Stamp stamp;
    bool sound = false;  // its checksum is the one that was promised
    sim::PageMemory::Accessor accessor = 0;
    bool open = true;
  };
  struct Pull {
    uint64_t id = 0;
    std::vector<Page> pages;
  };
  struct Promised {
    PromptData prompt;
    std::vector<Page> pages;  // of the grant, in its order
  };
  struct Offered {
    GrantId id;
    PromptData prompt;
    sim::PageMemory::Accessor accessor = 0;
    std::vector<PageId> pages;
    std::vector<sim::Stamp> stamps;  // parallel, once the grant was answered
    bool revoked = false;
  };

  // As the one that is asked.
  void Answer(const Operation& operation);
  HelloAnswer AnswerHello(const Operation& operation, uint32_t node);
  GrantAnswer AnswerGrant(const Operation& operation, uint32_t node, const GrantRequest& request);
  Promised PromiseOf(const GrantRequest& request, uint32_t from, uint32_t to) const;
  // As the one that tells.
  void Feed(const Operation& operation);
  FeedPiece PieceOf(const Operation& operation, uint32_t node);
  std::vector<uint64_t> KeysOf(const Operation& operation) const;
  void EndFeed(const Operation& operation);
  // As the transfer engine.
  void Pulled(const Operation& operation);
  void Outcome(Pull* pull, const std::vector<uint32_t>& positions, PageOutcome outcome);
  void EndPull(size_t at, PullStatus status, Nanos took, bool warm);
  void Sent(const Operation& operation);
  void EndOffer(size_t at, uint64_t pages_sent);
  // As the one that asks.
  void Ask(const Operation& operation);
  HelloRequest Greeting(const Operation& operation) const;
  GrantRequest Wish(const Operation& operation) const;
  DoneRequest Thanks(const Operation& operation) const;
  void Granted(const GrantRequest& request, const GrantAnswer& answer);
  void Verify(const Offered& offer);
  void Subscribe(const Operation& operation);
  void Ready(const Operation& operation);
  void Unsubscribed(uint64_t stream);
  void Hear(const SendFeed& feed);

  static uint32_t NodeOf(const Operation& operation) { return operation.who % kNodes; }
  PeerHello HelloOf(const Operation& operation, uint32_t node) const;
  BootId BootOf(uint32_t node) const { return BootId(100 + 10 * node + nodes_[node]->life); }
  std::optional<SpaceId> SpaceOf(const Operation& operation) const;
  const SpaceShape* ShapeOf(const std::string& identity) const;

  CoreWatch* watch_;
  std::array<std::unique_ptr<Node>, kNodes> nodes_;
  std::vector<AskPeer> calls_;
  std::vector<Stream> streams_;
  std::vector<Pull> pulls_;
  std::map<uint64_t, Promised> promised_;  // by the grant's low half
  std::vector<Offered> offers_;
  std::map<uint64_t, Told> told_;
  std::optional<PeerAnswerBody> answer_;  // of the core, in this step
  uint64_t last_call_ = 0, last_stream_ = 0, last_grant_ = 0;
};

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_NEIGHBOURS_H_
