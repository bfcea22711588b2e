#include "node/local/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "node/local/clock.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

constexpr int kAcceptsPerTurn = 16;
constexpr Nanos kPause = 100'000'000;

bool IsPassing(int error) {
  return error == EINTR || error == ECONNABORTED || error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

Acceptor::Acceptor(EventLoop* loop, Listener listener, Take take, SayPaused say_paused)
    : loop_(loop),
      listener_(std::move(listener)),
      take_(std::move(take)),
      say_paused_(std::move(say_paused)) {
  watch_ = loop_->Watch(listener_.fd(), EPOLLIN, [this](uint32_t) { Accept(); });
  PANDO_CHECK(watch_ != EventLoop::WatchId::kNone) << "no room to watch " << listener_.path();
}

void Acceptor::Accept() {
  for (int i = 0; i < kAcceptsPerTurn && watch_ != EventLoop::WatchId::kNone; ++i) {
    UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (!IsPassing(errno)) Pause(errno);
      return;
    }
    take_(std::move(socket));
  }
}

void Acceptor::Pause(int error) {
  if (watch_ == EventLoop::WatchId::kNone) return;
  say_paused_(error);
  loop_->Rewatch(watch_, listener_.fd(), 0);
  loop_->At(Now() + kPause, [this] {
    if (watch_ != EventLoop::WatchId::kNone) loop_->Rewatch(watch_, listener_.fd(), EPOLLIN);
  });
}

void Acceptor::Stop() {
  if (watch_ != EventLoop::WatchId::kNone) loop_->Unwatch(watch_, listener_.fd());
  watch_ = EventLoop::WatchId::kNone;
}

}  // namespace pando::local
