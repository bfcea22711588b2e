#include "client/ctl/other_protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace pando::ctl {
namespace {

constexpr int kPatienceMs = 200;

// A SETTINGS frame comes first: length (3 bytes), type 4, flags, stream 0 (4 bytes).
bool BeginsHttp2(int fd) {
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  uint8_t head[9] = {};
  if (poll(&readable, 1, kPatienceMs) != 1) return false;
  if (recv(fd, head, sizeof(head), MSG_DONTWAIT) != static_cast<ssize_t>(sizeof(head)))
    return false;
  const uint8_t stream[4] = {};
  return head[0] == 0 && head[3] == 4 && std::memcmp(head + 5, stream, sizeof(stream)) == 0;
}

}  // namespace

bool SpeaksHttp2(const std::string& socket) {
  const std::string path = socket.starts_with("unix:") ? socket.substr(5) : socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool connected = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  const bool spoke = connected && BeginsHttp2(fd);
  close(fd);
  return spoke;
}

}  // namespace pando::ctl
