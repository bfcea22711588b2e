// All named steps of the program (radix/base/steps.h), and the listener that stops it at one.
#ifndef PANDO_NODE_RUNTIME_STEP_NAMES_H_
#define PANDO_NODE_RUNTIME_STEP_NAMES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "radix/base/steps.h"

namespace pando::runtime {

namespace step {
inline constexpr std::string_view kListening = "node.listening";
inline constexpr std::string_view kExtentCreated = "extent.created";
inline constexpr std::string_view kReady = "node.ready";
inline constexpr std::string_view kDrainRequested = "drain.requested";
inline constexpr std::string_view kDrainEnded = "drain.ended";
}  // namespace step

// In the order of a node's life as far as there is one; each once.
std::vector<std::string_view> AllSteps();
bool IsStep(std::string_view name);

// Stops the process (SIGSTOP) when `step` is reached for the `count`th time, after having said
// "paused STEP" on stdout. Thread-safe.
class PauseListener final : public StepListener {
 public:
  PauseListener(std::string step, uint64_t count) : step_(std::move(step)), left_(count) {}
  void Reached(std::string_view step) override;

 private:
  const std::string step_;
  std::atomic<uint64_t> left_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_STEP_NAMES_H_
