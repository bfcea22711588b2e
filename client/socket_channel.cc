#include "client/socket_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "client/limits.h"

namespace pando::client {
namespace {

constexpr size_t kReadBytes = 64u << 10;
constexpr size_t kKeepBytes = 1u << 20;  // a larger buffer is given back once it is empty

std::string WithError(const std::string& what) {
  return what + ": " + strerror(errno);
}

// Those without MSG_DONTWAIT, each for kBrieflyNanos at most. The socket is connected: its other
// calls all say MSG_DONTWAIT. False: they fail as before.
bool LetReadsBlock(int socket) {
  const timeval most = {0, kBrieflyNanos / 1000};
  return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
         fcntl(socket, F_SETFL, 0) == 0;
}

ssize_t SendWithFd(int socket, std::string_view bytes, int fd, int flags) {
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &message, flags);
}

uint32_t LengthAt(const char* bytes) {
  uint32_t length = 0;
  std::memcpy(&length, bytes, sizeof(length));  // little-endian, like every machine we run on
  return length;
}

}  // namespace

SocketChannel::SocketChannel(std::string path)
    : path_(path.starts_with("unix:") ? path.substr(5) : std::move(path)) {}

bool SocketChannel::Open(std::string* error) {
  Close();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof(address.sun_path)) {
    *error = "the socket's path has " + std::to_string(path_.size()) + " bytes, allowed are 1 to " +
             std::to_string(sizeof(address.sun_path) - 1);
    return false;
  }
  std::memcpy(address.sun_path, path_.data(), path_.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // A Unix socket connects at once or not at all (EAGAIN: the node's backlog is full).
  if (!socket.valid() ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    *error = WithError("no node at " + path_);
    return false;
  }
  socket_ = std::move(socket);
  brief_ = LetReadsBlock(socket_.get());
  return true;
}

void SocketChannel::Close() {
  socket_.reset();
  brief_ = false;
  queue_.clear();
  queued_bytes_ = 0;
  begin_ = end_ = 0;
  fds_.clear();
  drained_ = false;
  ended_.clear();
}

ssize_t SocketChannel::SendSome(std::string_view bytes, int fd) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  const ssize_t sent = fd < 0 ? send(socket_.get(), bytes.data(), bytes.size(), kFlags)
                              : SendWithFd(socket_.get(), bytes, fd, kFlags);
  if (sent >= 0) return sent;
  const bool later = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM;
  return later ? 0 : -1;
}

bool SocketChannel::Send(std::string* frame, UniqueFd fd) {
  if (!socket_.valid()) return false;
  size_t sent = 0;
  if (queue_.empty()) {
    const ssize_t went = SendSome(*frame, fd.get());
    if (went < 0) return false;
    sent = static_cast<size_t>(went);
    if (sent == frame->size()) return true;
    if (sent > 0) fd.reset();
  }
  queued_bytes_ += frame->size() - sent;
  queue_.push_back({std::move(*frame), sent, std::move(fd)});
  frame->clear();
  return true;
}

bool SocketChannel::Flush() {
  while (!queue_.empty()) {
    Outgoing& next = queue_.front();
    const ssize_t went = SendSome(std::string_view(next.bytes).substr(next.sent), next.fd.get());
    if (went < 0) return false;
    if (went == 0) return true;
    next.fd.reset();
    next.sent += static_cast<size_t>(went);
    queued_bytes_ -= static_cast<size_t>(went);
    if (next.sent == next.bytes.size()) queue_.pop_front();
  }
  return true;
}

Channel::Received SocketChannel::Receive(std::string_view* frame, std::string* error) {
  if (!socket_.valid()) return Received::kEnded;
  while (ended_.empty()) {
    const size_t bytes = NextBytes();
    if (bytes > kFrameHeaderBytes + limits::kFrameBytes) {
      *error = "the node sent a frame of " + std::to_string(bytes - kFrameHeaderBytes) +
               " bytes, allowed are " + std::to_string(limits::kFrameBytes);
      return Received::kEnded;
    }
    if (HasFrame()) {
      *frame = std::string_view(in_.data() + begin_, bytes).substr(kFrameHeaderBytes);
      begin_ += bytes;
      return Received::kFrame;
    }
    MakeRoom(bytes);
    if (HasStrayFds()) {
      *error = "the node sent file descriptors that belong to no frame";
      return Received::kEnded;
    }
    if (std::exchange(drained_, false)) return Received::kNothing;
    if (ReadSome(MSG_DONTWAIT) == Read::kNothing) return Received::kNothing;
  }
  *error = ended_;
  return Received::kEnded;
}

bool SocketChannel::WaitBriefly() {
  if (!brief_ || !queue_.empty()) return false;
  // A frame may be left from before; and what is wrong is Receive's to say.
  if (HasFrame() || NextBytes() > kFrameHeaderBytes + limits::kFrameBytes || !ended_.empty()) {
    return true;
  }
  MakeRoom(NextBytes());
  return ReadSome(0) != Read::kNothing;
}

size_t SocketChannel::NextBytes() const {
  if (end_ - begin_ < kFrameHeaderBytes) return kFrameHeaderBytes;
  return kFrameHeaderBytes + LengthAt(in_.data() + begin_);
}

// Makes in_ able to hold `bytes` from begin_ on, and at least one usual read.
void SocketChannel::MakeRoom(size_t bytes) {
  const size_t here = end_ - begin_;
  const size_t needed = std::max(bytes, here + kReadBytes / 2);
  if (here == 0 && in_.size() > kKeepBytes && needed <= kKeepBytes) {
    in_ = std::vector<char>(kReadBytes);
    begin_ = end_ = 0;
  }
  if (begin_ + needed <= in_.size()) return;
  if (here != 0) std::memmove(in_.data(), in_.data() + begin_, here);
  begin_ = 0;
  end_ = here;
  if (in_.size() < needed) in_.resize(std::max(needed, 2 * kReadBytes));
}

SocketChannel::Read SocketChannel::ReadSome(int flags) {
  iovec piece = {in_.data() + end_, in_.size() - end_};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * limits::kFdsPerMessage)];
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(socket_.get(), &message, flags | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read::kNothing;
  if (got <= 0) {
    ended_ = got == 0 ? "the node closed the connection" : WithError("reading from the node");
    return Read::kEnded;
  }
  end_ += static_cast<size_t>(got);
  const bool with_fds = message.msg_controllen != 0;
  if (with_fds && !KeepFds(&message)) {
    ended_ = "file descriptors from the node were cut off: raise the limit of open files";
    return Read::kEnded;
  }
  // A read ends at bytes that came with fds even if more is there; else a short one took all.
  drained_ = !with_fds && static_cast<size_t>(got) < piece.iov_len;
  return Read::kBytes;
}

bool SocketChannel::KeepFds(msghdr* message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(message); header != nullptr;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds_.emplace_back(fd);
    }
  }
  return (message->msg_flags & MSG_CTRUNC) == 0;
}

UniqueFd SocketChannel::TakeFd() {
  if (fds_.empty()) return UniqueFd();
  UniqueFd fd = std::move(fds_.front());
  fds_.pop_front();
  return fd;
}

// Fds come with the first byte of their frame: none may wait between frames, and a frame that is
// partly here owns at most one message's worth.
bool SocketChannel::HasStrayFds() const {
  return begin_ == end_ ? !fds_.empty() : fds_.size() > limits::kFdsPerMessage;
}

}  // namespace pando::client
