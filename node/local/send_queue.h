// What a session still has to be sent: whole frames in order, each with the descriptors that go
// with its first byte.
//
// As long as the socket takes everything nothing is copied or allocated. The descriptors are
// borrowed: they outlive the queue. Threads: one at a time.
#ifndef PANDO_NODE_LOCAL_SEND_QUEUE_H_
#define PANDO_NODE_LOCAL_SEND_QUEUE_H_

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node/local/socket_io.h"

namespace pando::local {

class SendQueue {
 public:
  // Sends `frame` now as far as the socket takes it, after all that waits, and keeps the rest.
  // kLater: the same, and that the socket is writable means nothing. kEnded or kFailed: the socket
  // is of no more use, and the queue is empty.
  Io Push(int socket, std::string_view frame, std::span<const int> fds);
  // Sends what waits. kDone: nothing waits any more.
  Io Flush(int socket);

  bool empty() const { return frames_.empty(); }
  size_t bytes() const { return bytes_; }
  void clear();

 private:
  struct Frame {
    std::string bytes;
    size_t sent = 0;
    std::vector<int> fds;  // empty once the first byte has gone
  };

  std::deque<Frame> frames_;
  size_t bytes_ = 0;  // unsent
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_SEND_QUEUE_H_
