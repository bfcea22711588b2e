// Named steps of the protocols. The code that takes a step says so, once, at the place where it
// takes it:
//
//   steps_->Reached(CoreStep::kLeaseGranted);
//
// A build of ours runs with no listener and pays one branch. `pando-node --list-steps` prints the
// names; `--pause-at NAME[:N]` stops the process at the N-th time a step is reached, so that a test
// can kill a process at exactly that point. Each room has one enum of its steps and one table of
// their names.
#ifndef PANDO_RADIX_BASE_STEPS_H_
#define PANDO_RADIX_BASE_STEPS_H_

#include <string_view>

namespace pando {

// Hears of every step that is reached, on the thread that takes it. Must outlive those it is given
// to.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void Reached(std::string_view step) = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_BASE_STEPS_H_
