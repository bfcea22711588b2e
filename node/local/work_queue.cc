#include "node/local/work_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <utility>

#include "radix/base/check.h"

namespace pando::local {
namespace {

// One RunAndWait: shared by the waiter and the work, whichever lives longer. A work that is dropped
// unrun ends it too.
class Rendezvous {
 public:
  // The owner's side. False: the waiter has gone.
  bool Start() {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kWaiting) return false;
    state_ = State::kRunning;
    return true;
  }
  void Finish(bool ran) {
    {
      const std::lock_guard lock(mutex_);
      if (state_ == State::kRan || state_ == State::kGone) return;
      state_ = ran ? State::kRan : State::kGone;
    }
    changed_.notify_all();
  }
  // The waiter's side: true once the work has run; gives up at the timeout unless it is running.
  bool Wait(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return state_ != State::kWaiting; });
    if (state_ == State::kWaiting) state_ = State::kGone;
    changed_.wait(lock, [this] { return state_ != State::kRunning; });
    return state_ == State::kRan;
  }

 private:
  enum class State : uint8_t { kWaiting, kRunning, kRan, kGone };
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kWaiting;
};

}  // namespace

WorkQueue::WorkQueue(size_t capacity)
    : capacity_(capacity), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PANDO_CHECK(event_.valid()) << "eventfd";
}

bool WorkQueue::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || waiting_.size() >= capacity_) return false;
    waiting_.push_back(std::move(work));
    if (waiting_.size() > 1) return true;  // the owner has been woken already
  }
  const uint64_t one = 1;
  return ::write(event_.get(), &one, sizeof(one)) == static_cast<ssize_t>(sizeof(one));
}

bool WorkQueue::RunAndWait(const std::function<void()>& work, std::chrono::milliseconds timeout) {
  const auto meeting = std::make_shared<Rendezvous>();
  // When the queue drops the work unrun, the last copy of this goes and the waiter is told.
  std::shared_ptr<void> dropped(nullptr, [meeting](void*) { meeting->Finish(false); });
  std::function<void()> task = [meeting, dropped = std::move(dropped), &work] {
    if (!meeting->Start()) return;
    work();
    meeting->Finish(true);
  };
  if (!Post(std::move(task))) return false;
  return meeting->Wait(timeout);
}

void WorkQueue::RunAll() {
  uint64_t count = 0;
  // EAGAIN only: there was nothing.
  [[maybe_unused]] const ssize_t read = ::read(event_.get(), &count, sizeof(count));
  {
    const std::lock_guard lock(mutex_);
    running_.swap(waiting_);
  }
  for (const std::function<void()>& work : running_) work();
  running_.clear();
}

void WorkQueue::Close() {
  std::vector<std::function<void()>> dropped;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(waiting_);
}

}  // namespace pando::local
