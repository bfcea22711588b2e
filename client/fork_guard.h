// Knows whether this is still the process that made it: a page that the kernel wipes in a child
// (MADV_WIPEONFORK), so that also a fork that goes past libc is seen. One load to ask.
// Thread-safe.
#ifndef PANDO_CLIENT_FORK_GUARD_H_
#define PANDO_CLIENT_FORK_GUARD_H_

#include <atomic>
#include <memory>

namespace pando::client {

class ForkGuard {
 public:
  // nullptr if the kernel refuses the page.
  static std::shared_ptr<const ForkGuard> Create();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  bool forked() const { return word_->load(std::memory_order_relaxed) == 0; }

 private:
  explicit ForkGuard(std::atomic<int>* word) : word_(word) {}
  std::atomic<int>* const word_;  // 1; reads 0 in a child
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_FORK_GUARD_H_
