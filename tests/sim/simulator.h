// A deterministic simulation of nodes and their replicas, from one seed. Nodes that are several
// share what they hold, over a network with faults. One thread.
//
// Promises that are checked: every recount of the core (NodeCore::SelfCheck), no wrong page, no
// page written while another (a replica, a peer) may touch it, no false refusal, a balanced
// account, and at the end, when all processes have gone, nothing is held by anybody, and every
// node's view of every other is the truth.
#ifndef PANDO_TESTS_SIM_SIMULATOR_H_
#define PANDO_TESTS_SIM_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "node/core/node_core.h"

namespace pando::sim {

struct SimulationOptions {
  uint64_t seed = 1;
  uint64_t steps = 100'000;  // inputs to all cores
  uint32_t nodes = 1;
  uint32_t replicas = 5;      // of each node
  uint32_t extents = 24;      // of 64 MiB; pages are 4 or 8 MiB, so that eviction runs
  bool collide = false;       // all keys of the tree are equal (FAULTS A8)
  bool intents = true;        // replicas say what they compute, and wait for what others do
  uint64_t check_every = 64;  // steps between two self-checks
};

struct SimulationReport {
  uint64_t hash = 0;  // of everything that was put out
  uint64_t failures = 0;
  std::vector<std::string> first_failures;
  uint64_t steps = 0, requests = 0, blocks_loaded = 0, deaths = 0;
  uint64_t awaited_blocks = 0, fetched_pages = 0, bad_pages_pulled = 0, feeds_broken = 0;
  uint64_t hit_peer = 0;
  CoreStatus status;  // of the first node, at the end
};

SimulationReport Simulate(const SimulationOptions& options);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIMULATOR_H_
