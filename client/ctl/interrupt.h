// Ctrl-C and SIGTERM as a question instead of a surprise: while one of these lives, they are held
// back and can be asked for. Made and asked on the main thread, before other threads start.
#ifndef PANDO_CLIENT_CTL_INTERRUPT_H_
#define PANDO_CLIENT_CTL_INTERRUPT_H_

#include <signal.h>

namespace pando::ctl {

class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  // True once one of the signals has come. Takes about a microsecond.
  bool Seen();

 private:
  sigset_t signals_;
  sigset_t before_;
  bool seen_ = false;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_INTERRUPT_H_
