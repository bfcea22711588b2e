#include "node/runtime/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "radix/base/check.h"

namespace pando::runtime {

Inbox::Inbox() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PANDO_CHECK(event_.valid()) << "eventfd";
}

void Inbox::Put(Input input) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(input));
    if (waiting_.size() > 1) return;  // the owner has been woken already
  }
  Wake();
}

void Inbox::Wake() {
  const uint64_t one = 1;
  // EAGAIN only: it is readable as it is.
  [[maybe_unused]] const ssize_t wrote = ::write(event_.get(), &one, sizeof(one));
}

std::vector<Input> Inbox::Take() {
  uint64_t count = 0;
  // EAGAIN only: there was nothing.
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof(count));
  std::vector<Input> taken;
  const std::lock_guard lock(mutex_);
  taken.swap(waiting_);
  return taken;
}

}  // namespace pando::runtime
