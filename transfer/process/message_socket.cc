#include "transfer/process/message_socket.h"

#include <google/protobuf/message_lite.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "radix/base/check.h"

namespace pando::transfer {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr size_t kLengthBytes = sizeof(uint32_t);
constexpr size_t kReadBytes = 256u << 10;
constexpr size_t kFdsMax = 16;  // of one read
constexpr uint32_t kWithFd = 1u << 31;

}  // namespace

void MessageSocket::Put(const google::protobuf::MessageLite& message, int fd) {
  const size_t bytes = message.ByteSizeLong();
  PANDO_CHECK(bytes < kWithFd) << "a message of " << bytes << " bytes";
  Outgoing out;
  out.frame.resize(kLengthBytes + bytes);
  const uint32_t length = static_cast<uint32_t>(bytes) | (fd >= 0 ? kWithFd : 0);
  std::memcpy(out.frame.data(), &length, kLengthBytes);
  message.SerializeWithCachedSizesToArray(
      reinterpret_cast<uint8_t*>(out.frame.data() + kLengthBytes));
  out.fd = fd;
  to_send_.push_back(std::move(out));
}

bool MessageSocket::Send() {
  while (!to_send_.empty()) {
    Outgoing& out = to_send_.front();
    iovec part{out.frame.data() + out.sent, out.frame.size() - out.sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (out.fd >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &out.fd, sizeof(out.fd));
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    out.fd = -1;
    out.sent += static_cast<size_t>(sent);
    if (out.sent == out.frame.size()) to_send_.pop_front();
  }
  return true;
}

bool MessageSocket::Receive() {
  for (;;) {
    buffer_.resize(kReadBytes);  // once
    iovec part{buffer_.data(), buffer_.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsMax)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    partial_.append(buffer_.data(), static_cast<size_t>(got));
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        fds_.emplace_back(fd);
      }
    }
    if (!Cut()) return false;
  }
}

// Whole frames of `partial_` become messages.
bool MessageSocket::Cut() {
  size_t at = 0;
  while (partial_.size() - at >= kLengthBytes) {
    uint32_t length = 0;
    std::memcpy(&length, partial_.data() + at, kLengthBytes);
    const size_t bytes = length & ~kWithFd;
    if (partial_.size() - at - kLengthBytes < bytes) break;
    Message message{partial_.substr(at + kLengthBytes, bytes), {}};
    if ((length & kWithFd) != 0) {
      if (fds_.empty()) return false;
      message.fd = std::move(fds_.front());
      fds_.pop_front();
    }
    came_.push_back(std::move(message));
    at += kLengthBytes + bytes;
  }
  partial_.erase(0, at);
  return true;
}

}  // namespace pando::transfer
