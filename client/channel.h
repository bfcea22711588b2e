// How frames reach a node and come back: a Unix socket (socket_channel.h), or, in tests, a node in
// the same process.
//
//   Open ──► Send, Flush, Receive ... ──► Close ──► Open again
//
// A frame is a ClientFrame or a NodeFrame, serialized. On the wire its length comes before it as a
// little-endian u32, and an fd travels with its first byte. Nothing here blocks but WaitBriefly,
// and nothing here looks into a frame.
//
// Threads: as Client, one at a time.
#ifndef PANDO_CLIENT_CHANNEL_H_
#define PANDO_CLIENT_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "transfer/memory/unique_fd.h"

namespace pando::client {

inline constexpr size_t kFrameHeaderBytes = 4;
inline constexpr int64_t kBrieflyNanos = 20'000'000;  // far longer than a node takes to answer

class Channel {
 public:
  virtual ~Channel() = default;

  // Starts a connection; false, with `*error`, if there is no node now.
  virtual bool Open(std::string* error) = 0;
  // Ends it and forgets what is queued, received or waiting. Open may follow.
  virtual void Close() = 0;

  // Sends `*frame`: kFrameHeaderBytes with its length, then the frame. What cannot go now is queued
  // (then `*frame` is taken and left empty); `fd`, if valid, goes with the first byte. False: the
  // connection has ended.
  virtual bool Send(std::string* frame, UniqueFd fd) = 0;
  // Sends what is queued, as far as it goes. False: the connection has ended.
  virtual bool Flush() = 0;
  virtual size_t queued_bytes() const = 0;

  enum class Received { kFrame, kNothing, kEnded };
  // The next frame, without its length; valid until the next call. kEnded says why in `*error`:
  // the node closed, a frame is too long, or more fds came than the frames before wanted.
  virtual Received Receive(std::string_view* frame, std::string* error) = 0;
  // Waits a moment for input, to be called after Receive has said kNothing and while nothing is
  // queued: what comes is there for Receive. It takes kBrieflyNanos at the most, and costs one
  // system call where fd() and Receive cost two. False: this channel cannot, poll fd().
  virtual bool WaitBriefly() { return false; }
  // The next of the fds that came, in order; not valid: there is none. A frame's fds are there when
  // the frame is.
  virtual UniqueFd TakeFd() = 0;

  // To be polled; -1 while not open.
  virtual int fd() const = 0;
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_CHANNEL_H_
