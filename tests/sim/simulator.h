// A deterministic simulation of one node and its replicas, from one seed. The parts (clock, node
// behind sockets, replica, page memory, checker) know nothing of how many nodes there are. One
// thread.
//
// Promises that are checked: every recount of the core (NodeCore::SelfCheck), no wrong page, no
// page written while another may touch it, no false refusal, a balanced account, and at the end,
// when all processes have gone, nothing is held by anybody.
#ifndef PANDO_TESTS_SIM_SIMULATOR_H_
#define PANDO_TESTS_SIM_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "node/core/node_core.h"

namespace pando::sim {

struct SimulationOptions {
  uint64_t seed = 1;
  uint64_t steps = 100'000;  // inputs to the core
  uint32_t replicas = 5;
  uint32_t extents = 24;      // of 64 MiB; pages are 4 or 8 MiB, so that eviction runs
  bool collide = false;       // all keys of the tree are equal (FAULTS A8)
  uint64_t check_every = 64;  // steps between two self-checks
};

struct SimulationReport {
  uint64_t hash = 0;  // of everything that was put out
  uint64_t failures = 0;
  std::vector<std::string> first_failures;
  uint64_t steps = 0, requests = 0, blocks_loaded = 0, deaths = 0;
  CoreStatus status;  // at the end
};

SimulationReport Simulate(const SimulationOptions& options);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIMULATOR_H_
