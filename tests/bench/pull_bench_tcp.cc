// Raw TCP: a request of a slot, a page back, kInFlight requests ahead; nothing is verified.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/bench/pull_bench_peer.h"
#include "transfer/ucx/listen_address.h"

namespace pando::bench {
namespace {

void ReadAll(int fd, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = read(fd, at, bytes);
    if (got <= 0) std::abort();
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

void WriteAll(int fd, const void* from, size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = write(fd, at, bytes);
    if (put <= 0) std::abort();
    at += put;
    bytes -= static_cast<size_t>(put);
  }
}

}  // namespace

int ServeTcp() {
  const std::span<std::byte> pool = MakePool(true);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(in);
  if (bind(listener, reinterpret_cast<sockaddr*>(&in), size) != 0 || listen(listener, 1) != 0) {
    return 1;
  }
  getsockname(listener, reinterpret_cast<sockaddr*>(&in), &size);
  Say("127.0.0.1:" + std::to_string(ntohs(in.sin_port)));
  const int fd = accept(listener, nullptr, nullptr);
  unsigned seed = 0;
  for (size_t page_bytes = 0; NextLot(&seed, &page_bytes);) {
    Say("ok");
    for (uint32_t i = 0; i < kPulled; ++i) {
      uint32_t slot = 0;
      ReadAll(fd, &slot, sizeof(slot));
      WriteAll(fd, pool.data() + slot * page_bytes, page_bytes);
    }
  }
  return 0;
}

int ConnectTcp(const std::string& address) {
  const auto to = transfer::ParseAddress(address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!to || connect(fd, reinterpret_cast<const sockaddr*>(&to->storage), to->size) != 0) {
    std::abort();
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return fd;
}

double PullTcp(int socket, const Lot& lot, std::span<std::byte> pool) {
  const double start = Seconds();
  WriteAll(socket, lot.from.data(), kInFlight * sizeof(uint32_t));
  for (uint32_t i = 0; i < kPulled; ++i) {
    ReadAll(socket, pool.data() + lot.to[i] * lot.page_bytes, lot.page_bytes);
    if (i + kInFlight < kPulled) WriteAll(socket, &lot.from[i + kInFlight], sizeof(uint32_t));
  }
  return Seconds() - start;
}

}  // namespace pando::bench
