// One host's monotonic clock beside the simulated time: it is ahead by some time, stands still now
// and then, and jumps forward; it never goes back. One thread.
#ifndef PANDO_TESTS_SIM_CLOCK_H_
#define PANDO_TESTS_SIM_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "radix/base/ids.h"

namespace pando::sim {

class Clock {
 public:
  explicit Clock(Nanos ahead) : ahead_(ahead) {}

  Nanos At(Nanos time) const { return time < thaws_ ? stands_at_ : time + ahead_; }
  // The simulated time, `now` or later, at which it will show this.
  Nanos TimeOf(Nanos shown, Nanos now) const {
    if (shown == INT64_MAX || shown <= At(now)) return shown == INT64_MAX ? shown : now;
    return std::max(shown - ahead_, now < thaws_ ? thaws_ : now);
  }
  void Jump(Nanos by) { ahead_ += by; }
  void Freeze(Nanos now, Nanos until) {
    stands_at_ = At(now);
    thaws_ = std::max(thaws_, until);
  }

 private:
  Nanos ahead_;
  Nanos thaws_ = 0, stands_at_ = 0;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_CLOCK_H_
