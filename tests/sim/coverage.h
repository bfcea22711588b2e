// What simulations have come through: states and operations of pages, of fetches, of claims and
// holds. Changes nothing. One thread.
#ifndef PANDO_TESTS_SIM_COVERAGE_H_
#define PANDO_TESTS_SIM_COVERAGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/core/node_core.h"
#include "node/core/steps.h"
#include "radix/base/steps.h"
#include "radix/prefix_cache.h"

namespace pando::sim {

class Coverage final : public StepListener {
 public:
  struct Counts {
    PageOpCounts page_ops{};
    std::array<uint64_t, static_cast<size_t>(CoreStep::kFetchFinished) + 1> steps{};
    std::array<uint64_t, static_cast<size_t>(PeerCode::kBusy) + 1> grants{};  // answers, by code
    std::array<uint64_t, static_cast<size_t>(PullStatus::kOverloaded) + 1> pulls{};
    std::array<uint64_t, static_cast<size_t>(PageOutcome::kFailed) + 1> pages{};

    void Add(const Counts& more);
    // Tables of what was seen and what never was.
    std::string Text() const;
    // All that can be seen, by name.
    std::vector<std::pair<std::string, uint64_t>> Named() const;
  };

  void Reached(std::string_view step) override;
  void Add(const Output& output);
  void Add(const TransferEvent& event);
  PageOpCounts* page_ops() { return &counts_.page_ops; }
  const Counts& counts() const { return counts_; }

 private:
  Counts counts_;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_COVERAGE_H_
