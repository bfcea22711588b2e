// Stands in for the owner thread: takes what is delivered, hands it to the test. Any thread.
#ifndef PANDO_TESTS_NODE_CONTROL_INPUTS_H_
#define PANDO_TESTS_NODE_CONTROL_INPUTS_H_

#include <time.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "node/core/node_core.h"

namespace pando::control {

inline constexpr std::chrono::seconds kWait{20};

inline Nanos Monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanos>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class Inputs {
 public:
  std::function<void(Input)> sink() {
    return [this](Input input) {
      const std::lock_guard lock(mutex_);
      inputs_.push_back(std::move(input));
      came_.notify_all();
    };
  }
  // The oldest T, taken out; nullopt: none came in `wait`.
  template <class T>
  std::optional<T> Next(std::chrono::milliseconds wait = kWait) {
    const auto deadline = std::chrono::steady_clock::now() + wait;
    std::unique_lock lock(mutex_);
    for (;;) {
      for (auto it = inputs_.begin(); it != inputs_.end(); ++it) {
        if (!std::holds_alternative<T>(*it)) continue;
        T found = std::move(std::get<T>(*it));
        inputs_.erase(it);
        return found;
      }
      if (came_.wait_until(lock, deadline) == std::cv_status::timeout) return std::nullopt;
    }
  }
  // What is there now.
  template <class T>
  size_t Count() {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const Input& input : inputs_) count += std::holds_alternative<T>(input) ? 1 : 0;
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Input> inputs_;
};

}  // namespace pando::control

#endif  // PANDO_TESTS_NODE_CONTROL_INPUTS_H_
