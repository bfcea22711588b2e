#include "node/local/socket_io.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>

#include "node/core/limits.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(limits::kFdsPerMessage * sizeof(int));

bool WouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void TakeFds(msghdr* message, std::vector<UniqueFd>* fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
}

Io IoOf(int error) {
  if (WouldBlock(error)) return Io::kAgain;
  // Too many descriptors of ours are on their way to those who do not read, or memory is short.
  if (error == ETOOMANYREFS || error == ENOBUFS || error == ENOMEM) return Io::kLater;
  if (error == EPIPE || error == ECONNRESET) return Io::kEnded;
  return Io::kFailed;
}

}  // namespace

Received ReceiveOnce(int socket, std::span<char> buffer, std::vector<UniqueFd>* fds) {
  alignas(cmsghdr) std::array<char, kControlBytes> control;
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return {IoOf(errno), 0, false};
  if (message.msg_controllen > 0) TakeFds(&message, fds);
  const bool lost = (message.msg_flags & MSG_CTRUNC) != 0;
  if (got == 0) return {Io::kEnded, 0, lost};
  return {Io::kDone, static_cast<size_t>(got), lost};
}

Sent SendOnce(int socket, std::string_view bytes, std::span<const int> fds) {
  PANDO_CHECK(fds.size() <= limits::kFdsPerMessage) << fds.size() << " descriptors in one message";
  ssize_t sent = 0;
  if (fds.empty()) {
    sent = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } else {
    alignas(cmsghdr) std::array<char, kControlBytes> control{};
    iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (sent < 0) return {IoOf(errno), 0};
  return {Io::kDone, static_cast<size_t>(sent)};
}

NamedProcess PidOf(int fd) {
  // The kernel gives a pidfd, and nothing else, a line "Pid:\t<number>".
  const std::string path = "/proc/self/fdinfo/" + std::to_string(fd);
  const UniqueFd info(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!info.valid()) return {std::nullopt, errno};
  std::array<char, 4096> buffer;  // a pidfd's is a few lines
  const ssize_t got = ::read(info.get(), buffer.data(), buffer.size());
  if (got < 0) return {std::nullopt, errno};
  const std::string_view text(buffer.data(), static_cast<size_t>(got));
  constexpr std::string_view kKey = "\nPid:\t";
  const size_t key = text.find(kKey);
  if (key == std::string_view::npos) return {};
  int pid = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + key + kKey.size(), end, pid).ec != std::errc()) return {};
  return {pid, 0};
}

std::optional<PeerCredentials> CredentialsOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

}  // namespace pando::local
