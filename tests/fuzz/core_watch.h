// A core that is told what happens, with its outputs and what must hold after every step: its own
// recount, the account, and that no page is in two hands. One thread.
#ifndef PANDO_TESTS_FUZZ_CORE_WATCH_H_
#define PANDO_TESTS_FUZZ_CORE_WATCH_H_

#include <functional>
#include <string>

#include "node/core/node_core.h"
#include "tests/fuzz/script.h"
#include "tests/sim/checker.h"
#include "tests/sim/page_memory.h"

namespace pando::fuzz {

class CoreWatch {
 public:
  explicit CoreWatch(const Start& start);

  // Takes each output, in order.
  std::function<void(Output&)> on_output;

  void Step(Input input);
  // Time passes, with a step at each deadline of the core on the way, if they are not too many.
  void Advance(Nanos by);
  void AddExtent();

  Nanos now() const { return now_; }
  const NodeCore& core() const { return core_; }
  sim::PageMemory& memory() { return memory_; }
  void Expect(bool holds, const char* what) { checker_.Expect(holds, what); }
  // Everybody has gone: no claim, hold, request, ticket, grant, fetch, session or pin is left.
  void ExpectBase();
  // Empty, or the first thing that was broken.
  std::string trouble() const;

 private:
  NodeCore core_;
  sim::Checker checker_;
  sim::PageMemory memory_;
  Nanos now_ = 1'000'000'000;
  uint32_t extents_ = 0;
};

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_CORE_WATCH_H_
