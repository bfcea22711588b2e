// The owner thread's loop: descriptors, timers, and work that other threads hand over.
//
//   turn = wait ──► handlers of what is ready ──► posted work ──► timers due ──► turn end
//
// Invariants:
//  1. It wakes up for a reason only: there is no periodic timer.
//  2. A watch that was removed is not called again, not even for what was ready in the same turn.
//  3. A turn handles at most kEventsPerTurn ready descriptors; what is left waits for the next one.
//
// Threads: Post and RunAndWait from any other thread; all else from the owner thread, which is the
// one that calls Run (or, before Run, the one that made the loop).
#ifndef PANDO_NODE_LOCAL_EVENT_LOOP_H_
#define PANDO_NODE_LOCAL_EVENT_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "node/local/work_queue.h"
#include "radix/base/ids.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

class EventLoop {
 public:
  static constexpr int kEventsPerTurn = 64;
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

  using Handler = std::function<void(uint32_t events)>;  // epoll's
  enum class WatchId : uint64_t { kNone = 0 };

  explicit EventLoop(size_t work_capacity = 1024);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `handler` when `fd` is ready for one of `events`, until Unwatch. kNone if the system has
  // no room for another one. The fd stays the caller's; it is closed only after Unwatch.
  WatchId Watch(int fd, uint32_t events, Handler handler);
  void Rewatch(WatchId id, int fd, uint32_t events);
  void Unwatch(WatchId id, int fd);

  // Calls `work` once, at `time` or a little later.
  void At(Nanos time, std::function<void()> work);

  // Called at the end of every turn; says when the next turn is due at the latest.
  void SetTurnEnd(std::function<Nanos()> turn_end) { turn_end_ = std::move(turn_end); }

  // Runs `work` on the owner thread, some time. False: too much waits already, or the loop has
  // ended.
  bool Post(std::function<void()> work) { return work_.Post(std::move(work)); }
  // Runs `work` on the owner thread and waits for it. False: it did not run and never will.
  bool RunAndWait(const std::function<void()>& work, std::chrono::milliseconds timeout) {
    return work_.RunAndWait(work, timeout);
  }

  // Turns until Stop.
  void Run();
  void Stop() { stopping_ = true; }
  // From now on Post and RunAndWait refuse, and those who wait are told. Run does it at its end.
  void Close() { work_.Close(); }

 private:
  void Turn();
  void RunTimers();

  UniqueFd epoll_;
  WorkQueue work_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Handler>> handlers_;
  uint64_t last_id_ = 0;
  std::multimap<Nanos, std::function<void()>> timers_;
  std::function<Nanos()> turn_end_;
  Nanos due_ = kNever;  // the next turn, at the latest
  bool stopping_ = false;
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_EVENT_LOOP_H_
