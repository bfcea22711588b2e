// Acceptor: takes the connections that come to a listener.
//
// A few a turn. When the system has no room for another descriptor nobody is accepted for a moment:
// the connection that waits would wake the loop for ever, and is served once there is room.
// Owner thread.
#ifndef PANDO_NODE_LOCAL_ACCEPTOR_H_
#define PANDO_NODE_LOCAL_ACCEPTOR_H_

#include <functional>

#include "node/local/event_loop.h"
#include "node/local/listener.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

class Acceptor {
 public:
  using Take = std::function<void(UniqueFd)>;
  using SayPaused = std::function<void(int error)>;

  // `loop` outlives it, and does not turn any more once it has gone.
  Acceptor(EventLoop* loop, Listener listener, Take take, SayPaused say_paused);
  ~Acceptor() { Stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // No more for a moment: `error` says what there was no room for.
  void Pause(int error);
  // No more from now on; the socket stays.
  void Stop();

 private:
  void Accept();

  EventLoop* const loop_;
  Listener listener_;
  const Take take_;
  const SayPaused say_paused_;
  EventLoop::WatchId watch_ = EventLoop::WatchId::kNone;  // kNone: stopped
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_ACCEPTOR_H_
