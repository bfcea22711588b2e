// The simulated clock: what happens next, in order of time, then of scheduling. Delays are in units
// of a tenth of a millisecond. One thread.
#ifndef PANDO_TESTS_SIM_EVENT_QUEUE_H_
#define PANDO_TESTS_SIM_EVENT_QUEUE_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "radix/base/ids.h"

namespace pando::sim {

class EventQueue {
 public:
  Nanos now() const { return now_; }
  bool empty() const { return events_.empty(); }

  void At(Nanos time, std::function<void()> run) {
    events_.push({time < now_ ? now_ : time, ++last_, std::move(run)});
  }
  // The time so many units from now.
  Nanos In(uint64_t delay) const { return now_ + static_cast<Nanos>(delay) * kUnit; }
  void After(uint64_t delay, std::function<void()> run) { At(In(delay), std::move(run)); }

  // Runs the next event. There must be one.
  void RunNext() {
    Event event = events_.top();
    events_.pop();
    now_ = event.time;
    event.run();
  }

 private:
  static constexpr Nanos kUnit = 100'000;

  struct Event {
    Nanos time;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {  // the queue's top is the greatest
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  std::priority_queue<Event> events_;
  Nanos now_ = 1;
  uint64_t last_ = 0;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_EVENT_QUEUE_H_
