#include "client/ctl/interrupt.h"

#include <time.h>

namespace pando::ctl {

Interrupt::Interrupt() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

// A signal that nobody asked for any more came when all was done: it must not end the process
// before that has been printed.
Interrupt::~Interrupt() {
  const timespec now{};
  while (sigtimedwait(&signals_, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupt::Seen() {
  const timespec now{};
  if (!seen_) seen_ = sigtimedwait(&signals_, nullptr, &now) > 0;
  return seen_;
}

}  // namespace pando::ctl
