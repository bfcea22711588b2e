#include "node/local/send_queue.h"

namespace pando::local {

Io SendQueue::Push(int socket, std::string_view frame, std::span<const int> fds) {
  size_t sent = 0;
  Io io = Io::kAgain;
  if (frames_.empty()) {
    const Sent first = SendOnce(socket, frame, fds);
    if (first.io == Io::kEnded || first.io == Io::kFailed) return first.io;
    if (first.io == Io::kLater) io = Io::kLater;
    sent = first.bytes;
    if (sent == frame.size()) return Io::kDone;
  }
  Frame& kept = frames_.emplace_back();
  kept.bytes.assign(frame.substr(sent));
  if (sent == 0) kept.fds.assign(fds.begin(), fds.end());
  bytes_ += kept.bytes.size();
  return io;
}

Io SendQueue::Flush(int socket) {
  while (!frames_.empty()) {
    Frame& frame = frames_.front();
    const std::string_view rest = std::string_view(frame.bytes).substr(frame.sent);
    const Sent sent = SendOnce(socket, rest, frame.fds);
    if (sent.io == Io::kAgain || sent.io == Io::kLater) return sent.io;
    if (sent.io != Io::kDone) {
      clear();
      return sent.io;
    }
    frame.fds.clear();
    frame.sent += sent.bytes;
    bytes_ -= sent.bytes;
    if (frame.sent == frame.bytes.size()) frames_.pop_front();
  }
  return Io::kDone;
}

void SendQueue::clear() {
  frames_.clear();
  bytes_ = 0;
}

}  // namespace pando::local
