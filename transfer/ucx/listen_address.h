// "192.0.2.1:7000", "[2001:db8::1]:7000" <-> sockaddr. Numeric only: names are the node's to
// resolve.
#ifndef PANDO_TRANSFER_UCX_LISTEN_ADDRESS_H_
#define PANDO_TRANSFER_UCX_LISTEN_ADDRESS_H_

#include <sys/socket.h>

#include <optional>
#include <string>

namespace pando::transfer {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

std::optional<SocketAddress> ParseAddress(const std::string& text);
std::string FormatAddress(const sockaddr_storage& storage);
bool IsLoopback(const SocketAddress& address);

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_UCX_LISTEN_ADDRESS_H_
