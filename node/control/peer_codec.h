// proto/pando/v1/peer.proto as bytes <-> plain values (node/core/peer_messages.h).
//
//   bytes ─► Decode* ─► value, or Malformed{what was found, what is allowed}      never a crash
//   value ─► Encode* ─► bytes that Decode* takes
//
// What is checked here is the form: columns, sizes (node/core/cluster/limits.h), ids that are never
// 0, times. What a message means, and whether it may be said now, is the core's. Texts for people
// are cut to their limit when they are sent. Stateless; any thread.
#ifndef PANDO_NODE_CONTROL_PEER_CODEC_H_
#define PANDO_NODE_CONTROL_PEER_CODEC_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "node/core/peer_messages.h"

namespace pando::control {

// The calls of the service `Peer` that have one answer, in the order of PeerRequestBody.
enum class PeerCall : uint8_t { kHello, kGrant, kDone, kGoodbye };

// As gRPC writes them.
inline constexpr std::array<const char*, 4> kPeerCallPaths = {
    "/pando.v1.Peer/Hello", "/pando.v1.Peer/Grant", "/pando.v1.Peer/Done",
    "/pando.v1.Peer/Goodbye"};
inline constexpr const char* kFeedPath = "/pando.v1.Peer/Feed";

inline PeerCall CallOf(const PeerRequestBody& body) {
  return static_cast<PeerCall>(body.index());
}

struct Malformed {
  std::string message;
};

// What a message of the feed carries. Without a piece there are totals.
struct FeedNews {
  std::optional<FeedPiece> piece;
  std::optional<NodeTotals> totals;
};

std::string EncodeRequest(const PeerRequestBody& body);
std::string EncodeAnswer(const PeerAnswerBody& body);
std::string EncodeFeedRequest(const FeedRequest& request);
std::string EncodeFeed(const FeedPiece* piece, const std::optional<NodeTotals>& totals);

std::variant<PeerRequestBody, Malformed> DecodeRequest(PeerCall call, std::string_view bytes);
std::variant<PeerAnswerBody, Malformed> DecodeAnswer(PeerCall call, std::string_view bytes);
std::variant<FeedRequest, Malformed> DecodeFeedRequest(std::string_view bytes);
std::variant<FeedNews, Malformed> DecodeFeed(std::string_view bytes);

// The answer to a request that is none; nullopt: its answer has no room for a refusal.
std::optional<PeerAnswerBody> RefusalOf(PeerCall call, const Malformed& malformed);

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_CODEC_H_
