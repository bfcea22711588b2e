// A deterministic simulation of nodes and their replicas, from one seed. Nodes that are several
// share what they hold, over a network with faults. One thread.
//
// Promises that are checked: every recount of the core (NodeCore::SelfCheck), no wrong page, no
// page written while another (a replica, a peer) may touch it, no false refusal, one answer to each
// message in time; once faults have stopped, what was computed is hit again, here and from peers;
// and at the end, when all processes have gone, a balanced account, nothing held by anybody, and
// every node's view of every other is the truth.
//
// The first broken promise ends it.
#ifndef PANDO_TESTS_SIM_SIMULATOR_H_
#define PANDO_TESTS_SIM_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/core/node_core.h"
#include "tests/model/trace.h"
#include "tests/sim/coverage.h"
#include "tests/sim/decisions.h"
#include "tests/sim/faults.h"

namespace pando::sim {

// An hour of a cluster: faults and bursts of requests between quiet times.
struct HourPlan {
  uint64_t acts = 2000;  // requests and the like
  uint64_t bursts = 20;
  uint64_t faults = 30;  // of nodes and the network
};

struct SimulationOptions {
  uint64_t seed = 1;
  std::optional<HourPlan> hour = std::nullopt;  // none: as much load as can be, for ...
  uint64_t steps = 100'000;                     // ... so many inputs to all cores
  uint32_t nodes = 1;
  uint32_t replicas = 5;          // of each node
  uint32_t extents = 24;          // of 64 MiB; pages are 4 or 8 MiB, so that eviction runs
  uint32_t extent_pages_max = 0;  // 0: as many as fit
  bool collide = false;           // all keys of the tree are equal (FAULTS A8)
  bool intents = true;            // replicas say what they compute, and wait for what others do
  uint64_t check_every = 64;      // steps between two self-checks
  uint64_t delay = 30;            // of a message to or from an engine; in units of EventQueue, as
  uint64_t peer_delay = 1;        // that of one between nodes
  FaultSet faults = FaultSet().set();
  const std::vector<model::TraceRequest>* trace = nullptr;  // played too, if there
  std::optional<std::set<Decision>> only = std::nullopt;    // none: all decisions are made
  std::function<void(Decision)> on_decision = nullptr;
};

struct SimulationReport {
  uint64_t hash = 0;  // of everything that was put out
  uint64_t failures = 0;
  std::vector<std::string> first_failures;
  uint64_t steps = 0, events = 0, requests = 0, blocks_loaded = 0, deaths = 0;
  uint64_t faults = 0;  // of nodes, of the network, of processes and sockets
  uint64_t awaited_blocks = 0, fetched_pages = 0, bad_pages_pulled = 0, feeds_broken = 0;
  uint64_t hit_peer = 0;
  CoreStatus status;  // of the first node, at the end
  Coverage::Counts coverage;
};

SimulationReport Simulate(const SimulationOptions& options);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_SIMULATOR_H_
