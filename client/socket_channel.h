// A Channel over the node's Unix stream socket.
//
// Received bytes and fds are paired by order: the kernel hands out an fd with (or before) the bytes
// that it was sent with, and never those of two sends at once, so the fds of a frame are here when
// its first byte is. Which frame wants how many is in the frames, so the caller takes them.
#ifndef PANDO_CLIENT_SOCKET_CHANNEL_H_
#define PANDO_CLIENT_SOCKET_CHANNEL_H_

#include <sys/socket.h>

#include <deque>
#include <string>
#include <vector>

#include "client/channel.h"

namespace pando::client {

class SocketChannel : public Channel {
 public:
  // `path` with or without "unix:".
  explicit SocketChannel(std::string path);

  bool Open(std::string* error) override;
  void Close() override;
  bool Send(std::string* frame, UniqueFd fd) override;
  bool Flush() override;
  size_t queued_bytes() const override { return queued_bytes_; }
  Received Receive(std::string_view* frame, std::string* error) override;
  bool WaitBriefly() override;
  UniqueFd TakeFd() override;
  int fd() const override { return socket_.get(); }

 private:
  struct Outgoing {
    std::string bytes;
    size_t sent = 0;
    UniqueFd fd;  // until the first byte has gone
  };
  enum class Read { kBytes, kNothing, kEnded };

  // How many bytes went: 0 if none could, -1 if the connection has ended.
  ssize_t SendSome(std::string_view bytes, int fd);
  // `flags`: recvmsg's.
  Read ReadSome(int flags);
  bool KeepFds(msghdr* message);
  bool HasStrayFds() const;
  // Of the frame that comes next with its length, as far as they are here.
  size_t NextBytes() const;
  bool HasFrame() const { return end_ - begin_ >= NextBytes(); }
  void MakeRoom(size_t bytes);

  const std::string path_;
  UniqueFd socket_;
  bool brief_ = false;  // a read may block, for kBrieflyNanos

  std::deque<Outgoing> queue_;
  size_t queued_bytes_ = 0;

  std::vector<char> in_;  // received; [begin_, end_) is not yet handed out
  size_t begin_ = 0, end_ = 0;
  std::deque<UniqueFd> fds_;
  bool drained_ = false;  // the last read took all there was
  std::string ended_;     // why the connection has ended, for Receive to say
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_SOCKET_CHANNEL_H_
