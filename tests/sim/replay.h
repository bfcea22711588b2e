// A simulated hour as a file: what it was drawn from, and which decisions are made in it. Those
// that have found faults live in tests/data/sim.
//
//   # what it broke
//   seed 1
//   hour 7
//   nodes 0
//   faults drawn
//   decisions 0:3 0:9 4:17
//
// Immutable.
#ifndef PANDO_TESTS_SIM_REPLAY_H_
#define PANDO_TESTS_SIM_REPLAY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/sim/hours.h"

namespace pando::sim {

struct Replay {
  std::string violation;
  HourOptions hour;
  std::vector<Decision> decisions;

  SimulationOptions Options() const;
};

std::string Text(const Replay& replay);
absl::StatusOr<Replay> ParseReplay(const std::string& text);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_REPLAY_H_
