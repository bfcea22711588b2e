// What a decoder of the protocol between nodes took, said again and read again. Stateless.
#ifndef PANDO_TESTS_NODE_CONTROL_REREAD_H_
#define PANDO_TESTS_NODE_CONTROL_REREAD_H_

#include <string>
#include <variant>

#include "node/control/peer_codec.h"

namespace pando::control {

// Empty, or what is wrong: a refusal that says nothing, or a value that does not come back the
// same.
template <class Value, class Encode, class Decode>
std::string Reread(const std::variant<Value, Malformed>& read, const Encode& encode,
                   const Decode& decode) {
  if (const auto* wrong = std::get_if<Malformed>(&read)) {
    return wrong->message.empty() ? "a refusal that does not say why" : "";
  }
  const std::string said = encode(std::get<Value>(read));
  const std::variant<Value, Malformed> again = decode(said);
  if (const auto* wrong = std::get_if<Malformed>(&again)) {
    return "what was taken is refused when it is said again: " + wrong->message;
  }
  return encode(std::get<Value>(again)) == said ? "" : "what was taken is another when said again";
}

inline std::string RereadRequest(PeerCall call,
                                 const std::variant<PeerRequestBody, Malformed>& read) {
  return Reread(read, EncodeRequest,
                [&](const std::string& said) { return DecodeRequest(call, said); });
}
inline std::string RereadAnswer(PeerCall call,
                                const std::variant<PeerAnswerBody, Malformed>& read) {
  return Reread(read, EncodeAnswer,
                [&](const std::string& said) { return DecodeAnswer(call, said); });
}
inline std::string RereadFeedRequest(const std::variant<FeedRequest, Malformed>& read) {
  return Reread(read, EncodeFeedRequest, DecodeFeedRequest);
}
inline std::string RereadFeed(const std::variant<FeedNews, Malformed>& read) {
  return Reread(
      read,
      [](const FeedNews& news) {
        return EncodeFeed(news.piece ? &*news.piece : nullptr, news.totals);
      },
      DecodeFeed);
}

}  // namespace pando::control

#endif  // PANDO_TESTS_NODE_CONTROL_REREAD_H_
