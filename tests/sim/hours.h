// One simulated hour of a cluster, swarm style: each seed and hour draws its own mix of faults,
// numbers of nodes and replicas, sizes, delays and load. Immutable.
#ifndef PANDO_TESTS_SIM_HOURS_H_
#define PANDO_TESTS_SIM_HOURS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sim/simulator.h"

namespace pando::sim {

struct HourOptions {
  uint64_t seed = 1, hour = 0;
  uint32_t nodes = 0;                             // 0: as drawn
  std::optional<FaultSet> faults = std::nullopt;  // none: as drawn
  const std::vector<model::TraceRequest>* trace = nullptr;
};

SimulationOptions DrawHour(const HourOptions& options);

// An hour without load or faults proves nothing, and does not count.
inline constexpr uint32_t kHourNodes = 3;
inline constexpr uint64_t kHourRequests = 1000, kHourFaults = 20;

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_HOURS_H_
