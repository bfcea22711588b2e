// What an engine has let go of without a word: holds that were dropped, answers that nobody looked
// at. They are kept here, from whatever thread, until the client tells the node.
// Thread-safe.
#ifndef PANDO_CLIENT_RETURNS_H_
#define PANDO_CLIENT_RETURNS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "client/fork_guard.h"

namespace pando::client {

struct Return {
  enum class Kind : uint8_t { kAbort, kEndLoad, kEndStore } kind;
  uint64_t claim;  // its id, in the session's life of the node
};

class Returns {
 public:
  explicit Returns(std::shared_ptr<const ForkGuard> fork) : fork_(std::move(fork)) {}

  void Add(Return item) {
    if (fork_->forked()) return;  // the parent's business, and the mutex may be in anybody's hands
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
    any_.store(true, std::memory_order_release);
  }
  std::vector<Return> Take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(items_, {});
  }

 private:
  const std::shared_ptr<const ForkGuard> fork_;
  std::mutex mutex_;
  std::vector<Return> items_;
  std::atomic<bool> any_ = false;
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_RETURNS_H_
