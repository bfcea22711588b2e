// Every request and every fault of a simulation is a decision with a number, and has its chance
// from the seed and that number alone: so one can be left out, and the others stay what they were.
// That is what a failing seed is shrunk by. One thread.
#ifndef PANDO_TESTS_SIM_DECISIONS_H_
#define PANDO_TESTS_SIM_DECISIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "tests/sim/random.h"

namespace pando::sim {

// Who decides (the adversary is 0, then the replicas), and its how manieth decision it is.
struct Decision {
  uint32_t source = 0, ordinal = 0;
  friend auto operator<=>(const Decision&, const Decision&) = default;
};

class Decisions {
 public:
  // `only`: all others are left out; none: all are made. `on_made` may be null.
  Decisions(uint64_t seed, std::optional<std::set<Decision>> only,
            std::function<void(Decision)> on_made)
      : seed_(seed), only_(std::move(only)), on_made_(std::move(on_made)) {}

  // The chance of a decision that is to be made now.
  std::optional<Random> Take(Decision decision) {
    if (only_ && !only_->contains(decision)) return std::nullopt;
    if (on_made_) on_made_(decision);
    return Random(Mix(Mix(seed_, decision.source), decision.ordinal));
  }

 private:
  const uint64_t seed_;
  const std::optional<std::set<Decision>> only_;
  const std::function<void(Decision)> on_made_;
};

// One who decides.
class Decider {
 public:
  Decider(Decisions* decisions, uint32_t source) : decisions_(decisions), source_(source) {}
  std::optional<Random> Next() { return decisions_->Take({source_, ordinal_++}); }

 private:
  Decisions* decisions_;
  uint32_t source_, ordinal_ = 0;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_DECISIONS_H_
