#include "node/local/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "node/local/clock.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

constexpr Nanos kNanosPerMilli = 1'000'000;

// epoll's timeout for what is due at `due`: rounded up, so that nobody wakes up too early.
int TimeoutUntil(Nanos due) {
  if (due == EventLoop::kNever) return -1;
  const Nanos left = due - Now();
  if (left <= 0) return 0;
  const Nanos millis = (left + kNanosPerMilli - 1) / kNanosPerMilli;
  return static_cast<int>(std::min<Nanos>(millis, std::numeric_limits<int>::max()));
}

}  // namespace

EventLoop::EventLoop(size_t work_capacity)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), work_(work_capacity) {
  PANDO_CHECK(epoll_.valid()) << "epoll_create1: " << std::strerror(errno);
  const WatchId id = Watch(work_.fd(), EPOLLIN, [this](uint32_t) { work_.RunAll(); });
  PANDO_CHECK(id != WatchId::kNone) << "epoll_ctl: " << std::strerror(errno);
}

EventLoop::~EventLoop() {
  work_.Close();
}

EventLoop::WatchId EventLoop::Watch(int fd, uint32_t events, Handler handler) {
  const uint64_t id = ++last_id_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return WatchId::kNone;
  handlers_.emplace(id, std::make_shared<Handler>(std::move(handler)));
  return WatchId{id};
}

void EventLoop::Rewatch(WatchId id, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(id);
  const int result = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  PANDO_CHECK(result == 0) << "epoll_ctl of fd " << fd << ": " << std::strerror(errno);
}

void EventLoop::Unwatch(WatchId id, int fd) {
  handlers_.erase(static_cast<uint64_t>(id));
  const int result = ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  PANDO_CHECK(result == 0) << "epoll_ctl of fd " << fd << ": " << std::strerror(errno);
}

void EventLoop::At(Nanos time, std::function<void()> work) {
  timers_.emplace(time, std::move(work));
}

void EventLoop::Run() {
  while (!stopping_) Turn();
  work_.Close();
}

void EventLoop::Turn() {
  std::array<epoll_event, kEventsPerTurn> ready;
  const Nanos due = timers_.empty() ? due_ : std::min(due_, timers_.begin()->first);
  const int count =
      ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), TimeoutUntil(due));
  PANDO_CHECK(count >= 0 || errno == EINTR) << "epoll_wait: " << std::strerror(errno);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    const auto found = handlers_.find(event.data.u64);
    if (found == handlers_.end()) continue;
    // Kept alive: it may remove itself.
    const std::shared_ptr<Handler> handler = found->second;
    (*handler)(event.events);
  }
  RunTimers();
  due_ = turn_end_ ? turn_end_() : kNever;
}

void EventLoop::RunTimers() {
  if (timers_.empty()) return;
  const Nanos now = Now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::function<void()> work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
  }
}

}  // namespace pando::local
