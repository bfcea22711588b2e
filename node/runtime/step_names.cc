#include "node/runtime/step_names.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "node/core/steps.h"
#include "node/local/steps.h"

namespace pando::runtime {

std::vector<std::string_view> AllSteps() {
  std::vector<std::string_view> all = {step::kListening, step::kExtentCreated, step::kReady};
  all.insert(all.end(), local::step::kAll.begin(), local::step::kAll.end());
  const auto core = CoreStepNames();
  all.insert(all.end(), core.begin(), core.end());
  all.insert(all.end(), {step::kDrainRequested, step::kDrainEnded});
  return all;
}

bool IsStep(std::string_view name) {
  const std::vector<std::string_view> all = AllSteps();
  return std::find(all.begin(), all.end(), name) != all.end();
}

void PauseListener::Reached(std::string_view step) {
  if (step != step_) return;
  uint64_t left = left_.load(std::memory_order_relaxed);
  while (left > 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  if (left != 1) return;
  std::printf("paused %s\n", step_.c_str());
  std::fflush(stdout);
  ::raise(SIGSTOP);
}

}  // namespace pando::runtime
