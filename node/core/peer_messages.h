// The protocol between nodes as plain values: what node/control translates from and to
// proto/pando/v1/peer.proto, what tests and the simulator use directly. Field by field the meaning
// is peer.proto's. Plain data; no thread.
#ifndef PANDO_NODE_CORE_PEER_MESSAGES_H_
#define PANDO_NODE_CORE_PEER_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "node/core/account.h"
#include "node/core/cluster/feed.h"
#include "node/core/cluster/peer_id.h"
#include "node/core/messages.h"
#include "radix/base/ids.h"
#include "transfer/engine.h"

namespace pando {

enum class PeerCode : uint8_t {
  kOk,
  kInvalid,
  kIncompatible,
  kUnknown,
  kMiss,
  kBusy,
};

struct PeerSpace {
  std::string identity;
  uint32_t block_tokens = 0;
  uint32_t shards = 0;
  Bytes page_bytes;
};

struct PeerHello {
  uint32_t protocol_min = 0, protocol_max = 0;
  std::string node_name;
  BootId boot;
  uint32_t hash_formula = 0;
  uint64_t seed_check = 0;
  uint32_t checksum_formula = 0;
  std::string data_address;
  std::vector<PeerSpace> spaces;
};

struct HelloRequest {
  PeerHello hello;
};
struct HelloAnswer {
  PeerCode code = PeerCode::kOk;
  std::string message;
  PeerHello hello;
};

struct GrantRequest {
  BootId requester;
  BootId boot;
  std::string space_identity;
  uint32_t shards = 0;
  std::optional<GrantId> of_grant;  // else `prompt` says all
  PromptData prompt;                // tokens of blocks 0 to `to`
  uint32_t from = 0, to = 0;        // blocks
  Nanos life = 0;                   // 0: as the owner likes
};
struct GrantAnswer {
  PeerCode code = PeerCode::kOk;
  std::string message;
  BootId boot;
  GrantId grant;
  uint32_t from = 0, to = 0;
  Bytes page_bytes;
  std::vector<uint32_t> generations;  // a page, shard-major
  std::vector<uint64_t> checksums;    // parallel
  Nanos life = 0;
};

struct BadPages {
  GrantId grant;
  std::vector<uint32_t> pages;
};
struct DoneRequest {
  BootId requester;
  std::vector<GrantId> grants;
  std::vector<BadPages> bad;
};
struct DoneAnswer {
  uint32_t unknown = 0;
};

struct GoodbyeRequest {
  BootId boot;
  std::string reason;
};
struct GoodbyeAnswer {};

using PeerRequestBody = std::variant<HelloRequest, GrantRequest, DoneRequest, GoodbyeRequest>;
using PeerAnswerBody = std::variant<HelloAnswer, GrantAnswer, DoneAnswer, GoodbyeAnswer>;

struct FeedRequest {
  BootId requester;
  BootId boot;
  uint64_t sequence = 0;
};

// peer.proto's NodeCounters: tokens where nothing else is said, since the node's start.
struct NodeTotals {
  Account account;
  uint64_t pages = 0, pages_free = 0, blocks = 0;
  uint64_t uptime_ms = 0;
};

// ---- Inputs of NodeCore: what peers ask of this node (it is the owner)

struct PeerAsks {
  uint64_t call = 0;  // chosen by the caller, never used twice; AnswerPeer follows in the same step
  GrantId fresh;      // random, never used before: the id of the grant, if one is given
  PeerRequestBody body;
};
struct FeedAsked {
  uint64_t stream = 0;  // chosen by the caller, never used twice
  FeedRequest request;
};
struct FeedReady {  // the last SendFeed of it has gone out; the first is due without it
  uint64_t stream = 0;
};
struct FeedDropped {  // its requester or the connection ended it; nothing of it comes any more
  uint64_t stream = 0;
};

// ---- Inputs: what this node asked of peers (it is the requester)

struct PeersChanged {  // who the peers are, from now on
  struct Peer {
    PeerId id;            // the caller's; one address keeps its id
    std::string address;  // of its peer port, for people
  };
  std::vector<Peer> peers;
};
struct PeerAnswered {  // once for each AskPeer
  uint64_t call = 0;
  std::optional<PeerAnswerBody> answer;  // none: it did not come
  std::string why;                       // it did not come
};
struct FeedArrived {
  uint64_t stream = 0;
  std::optional<FeedPiece> piece;  // none: what came was no piece
  std::optional<NodeTotals> totals;
};
struct FeedEnded {  // once for each OpenFeed that CloseFeed has not ended
  uint64_t stream = 0;
  std::string why;
};
struct TransferHappened {
  TransferEvent event;
};
struct TransferRuns {  // whether pages can be moved here; as long as nothing is said, they can
  bool runs = true;
};
// This node can be reached by peers: begins to talk to them.
struct ClusterStarted {
  std::string node_name;
  BootId boot;
  std::string data_address;  // TransferEngine::address(); empty: gives no pages and takes none
  uint64_t seed = 0;         // random; changes no answer
};

// ---- Outputs

struct AnswerPeer {
  uint64_t call = 0;
  PeerAnswerBody answer;
};
struct SendFeed {  // at most one at a time a stream: FeedReady or FeedDropped follows
  uint64_t stream = 0;
  std::shared_ptr<const FeedPiece> piece;
  std::optional<NodeTotals> totals;
};
struct EndFeed {  // instead of anything more; a FeedDropped of it is not needed
  uint64_t stream = 0;
  PeerCode code = PeerCode::kUnknown;
  std::string message;
};

struct AskPeer {  // PeerAnswered follows, by `deadline`
  PeerId peer;
  uint64_t call = 0;
  Nanos deadline = 0;
  PeerRequestBody body;
};
struct OpenFeed {  // one at a time a peer
  PeerId peer;
  uint64_t stream = 0;
  FeedRequest request;
};
struct CloseFeed {
  uint64_t stream = 0;
};

// To the transfer engine; pages by name, whoever carries this out knows where they are.
struct OfferPages {
  GrantId grant;
  Bytes page_bytes;
  std::vector<PageId> pages;
};
struct RevokeOffer {
  GrantId grant;
};
struct StartPull {
  uint64_t pull = 0;
  std::string address;
  GrantId grant;
  Nanos deadline = 0;
  Bytes page_bytes;
  struct Page {
    uint32_t index = 0;  // in the grant
    uint64_t checksum = 0;
    PageId to;
  };
  std::vector<Page> pages;
};
struct CancelPull {
  uint64_t pull = 0;
};

// ---- Reads

enum class PeerState : uint8_t {
  kConnecting,    // no hello yet, or none that came
  kConnected,     // hello went well
  kIncompatible,  // it, or this node, refused: see `why`
  kSelf,          // it is this node
};

struct PeerStatus {
  PeerId peer;
  std::string address, name;
  BootId boot;
  PeerState state = PeerState::kConnecting;
  std::string why;             // the last failure; empty: none since it was well
  bool view_complete = false;  // of its feed
  uint64_t blocks = 0, prefilling = 0;
  std::optional<Nanos> heard_ago;   // any message of its
  std::optional<Nanos> closed_for;  // how long its circuit breaker stays open; none: it is closed
  double bytes_per_s = 0;           // measured by pulls; 0: not yet
  uint64_t grants_asked = 0, grants_missed = 0, grants_refused = 0;
  uint64_t pulls = 0, pages_pulled = 0, bytes_pulled = 0, pages_bad = 0, pages_failed = 0;
  uint64_t pull_micros = 0;
  std::optional<NodeTotals> totals;  // as last told
  Nanos totals_ago = 0;
};

struct ClusterStatus {
  bool started = false;
  NodeTotals totals;  // of this node
  uint64_t grants = 0, granted_bytes = 0;
  uint64_t guests = 0, feeds = 0;  // peers that said hello to us; their feeds
  uint64_t told_blocks = 0;        // advertised
  uint64_t directory_blocks = 0, directory_bytes = 0;
  uint64_t fetches = 0;  // under way
  std::vector<PeerStatus> peers;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_PEER_MESSAGES_H_
