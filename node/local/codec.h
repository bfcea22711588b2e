// Between proto/pando/v1/client.proto and the plain values of node/core/messages.h.
//
// Strict: whatever cannot be said in those values (a packed column of a wrong length, an unknown
// role, a message without a body) is answered to its sender with what was found, what is allowed,
// and never reaches the core. What the values can say is the core's to judge, limits included.
//
// Stateless; any thread.
#ifndef PANDO_NODE_LOCAL_CODEC_H_
#define PANDO_NODE_LOCAL_CODEC_H_

#include <cstdint>
#include <optional>

#include "node/core/messages.h"

namespace pando::v1 {
class ClientMessage;
class NodeMessage;
}  // namespace pando::v1

namespace pando::local {

// nullopt: `body` is the request. Else the answer for its sender, and `body` holds rubbish.
std::optional<Answer> DecodeRequest(const v1::ClientMessage& message, RequestBody* body);

// The message's own deadline; nullopt if it is no time (beyond 2^63 - 1 ns).
std::optional<Nanos> DecodeDeadline(uint64_t deadline_ns);

// protobuf writes to stderr about each message that it cannot parse; here its sender is answered
// and one line is logged, so that is said once too often. For the whole process; main calls it.
void QuietParser();

void EncodeAnswer(uint64_t serial, const Answer& answer, v1::NodeMessage* out);

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_CODEC_H_
