// Messages over a Unix stream socket, each with a descriptor if need be; never blocks.
//
//   socket.Put(message, fd);  socket.Send()     as much as the socket takes
//   socket.Receive();         for (Message& m : socket.Take()) ...
//   poll(socket.fd(), socket.wants_write() ? POLLIN | POLLOUT : POLLIN)
//
// frame = u32 (little-endian: length, and in the highest bit whether a descriptor comes with it) +
// that many bytes; the descriptor comes as SCM_RIGHTS with the first byte. Both sides are ours, so
// what does not parse is as the end of the stream.
//
// Threads: one at a time.
#ifndef PANDO_TRANSFER_PROCESS_MESSAGE_SOCKET_H_
#define PANDO_TRANSFER_PROCESS_MESSAGE_SOCKET_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "transfer/memory/unique_fd.h"

namespace google::protobuf {
class MessageLite;
}

namespace pando::transfer {

class MessageSocket {
 public:
  struct Message {
    std::string bytes;
    UniqueFd fd;  // mostly none
  };

  explicit MessageSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  // Queues. `fd` stays the caller's, who keeps it open as long as this lives.
  void Put(const google::protobuf::MessageLite& message, int fd = -1);
  // False: the other side has gone, or speaks out of turn; what came before can still be taken.
  bool Send();
  bool Receive();
  std::vector<Message> Take() { return std::exchange(came_, {}); }

  int fd() const { return socket_.get(); }
  bool wants_write() const { return !to_send_.empty(); }

 private:
  struct Outgoing {
    std::string frame;
    int fd = -1;  // its owner's; none once it has gone
    size_t sent = 0;
  };
  bool Cut();

  UniqueFd socket_;
  std::deque<Outgoing> to_send_;
  std::vector<char> buffer_;  // of one read
  std::string partial_;       // of a frame whose rest has not come
  std::deque<UniqueFd> fds_;  // came, and their frame not yet
  std::vector<Message> came_;
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_PROCESS_MESSAGE_SOCKET_H_
