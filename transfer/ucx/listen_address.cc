#include "transfer/ucx/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstring>

namespace pando::transfer {

std::optional<SocketAddress> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end) return std::nullopt;
  SocketAddress address;
  if (text.front() == '[') {
    if (colon < 2 || text[colon - 1] != ']') return std::nullopt;
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    const std::string host = text.substr(1, colon - 2);
    if (inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1) return std::nullopt;
    std::memcpy(&address.storage, &in6, sizeof(in6));
    address.size = sizeof(in6);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &in.sin_addr) != 1) return std::nullopt;
    std::memcpy(&address.storage, &in, sizeof(in));
    address.size = sizeof(in);
  }
  return address;
}

std::string FormatAddress(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &storage, sizeof(in6));
    inet_ntop(AF_INET6, &in6.sin6_addr, host.data(), host.size());
    return "[" + std::string(host.data()) + "]:" + std::to_string(ntohs(in6.sin6_port));
  }
  sockaddr_in in{};
  std::memcpy(&in, &storage, sizeof(in));
  inet_ntop(AF_INET, &in.sin_addr, host.data(), host.size());
  return std::string(host.data()) + ":" + std::to_string(ntohs(in.sin_port));
}

bool IsLoopback(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
}

}  // namespace pando::transfer
