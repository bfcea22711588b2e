// The simulated time: what happens next, in order of time, then of scheduling. Delays are in units
// of a tenth of a millisecond. One thread.
#ifndef PANDO_TESTS_SIM_EVENT_QUEUE_H_
#define PANDO_TESTS_SIM_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "radix/base/ids.h"

namespace pando::sim {

inline constexpr Nanos kSecond = 1'000'000'000;
inline constexpr uint64_t kUnitsPerSecond = 10'000;

class EventQueue {
 public:
  Nanos now() const { return now_; }
  bool empty() const { return events_.empty(); }
  // When the next event is. There must be one.
  Nanos next() const { return events_.front().time; }
  uint64_t ran() const { return ran_; }

  void At(Nanos time, std::function<void()> run) {
    events_.push_back({time < now_ ? now_ : time, ++last_, std::move(run)});
    std::push_heap(events_.begin(), events_.end());
  }
  // The time so many units from now.
  Nanos In(uint64_t delay) const { return now_ + static_cast<Nanos>(delay) * kUnit; }
  void After(uint64_t delay, std::function<void()> run) { At(In(delay), std::move(run)); }

  // Runs the next event. There must be one.
  void RunNext() {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.time;
    ++ran_;
    event.run();
  }
  // Nothing happens before that time: it is then.
  void Pass(Nanos time) { now_ = time; }

 private:
  static constexpr Nanos kUnit = kSecond / kUnitsPerSecond;

  struct Event {
    Nanos time;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {  // the heap's front is the greatest
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  std::vector<Event> events_;
  Nanos now_ = 1;
  uint64_t last_ = 0, ran_ = 0;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_EVENT_QUEUE_H_
