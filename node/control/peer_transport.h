// What both sides of the protocol between nodes ask of gRPC alike. Stateless; any thread.
#ifndef PANDO_NODE_CONTROL_PEER_TRANSPORT_H_
#define PANDO_NODE_CONTROL_PEER_TRANSPORT_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "node/core/peer_messages.h"

namespace pando::control {

// Who a node is to its peers, and whom it believes. Without TLS for now: whoever reaches the port
// is a peer, which is why it may be beyond loopback only where the operator says so.
std::shared_ptr<grpc::ChannelCredentials> MakePeerCredentials();

// A peer that says nothing is pinged after so long, and given up without an answer. A feed that
// should say something is missed sooner, by the core.
inline constexpr int kKeepaliveMillis = 30'000;
inline constexpr int kKeepaliveTimeoutMillis = 5'000;
// What a reader takes of one call before it has read on. Fixed: finding it out, as gRPC does by
// itself, takes a ping and its timer with every message, also where there is one in five seconds.
inline constexpr int kWindowBytes = 1 << 20;

// Takes the bytes without a copy.
grpc::ByteBuffer BufferOf(std::string bytes);

// A message in one piece; valid as long as this.
class Flat {
 public:
  explicit Flat(const grpc::ByteBuffer& buffer);
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(slice_.begin()), slice_.size()};
  }

 private:
  grpc::Slice slice_;
};

// How a feed's end travels: the code as gRPC's, with the message.
grpc::Status StatusOf(PeerCode code, const std::string& message);
// "UNAVAILABLE: connection refused".
std::string TextOf(const grpc::Status& status);

// "192.0.2.1:7000" and "[2001:db8::1]:7000" as gRPC's targets that need no DNS; nullopt: no such
// address.
std::optional<std::string> TargetOf(const std::string& address);

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_TRANSPORT_H_
