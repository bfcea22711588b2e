// Hosts of real processes that live on: on each a node, which is a peer of the others over
// loopback, and engines that ask for prompts of one tree without end. One loop listens to all of
// them (Drive); who kills does so between its turns.
//
//   cluster.Drive(deadline, [&] { return cluster.engine(0, 1).paused; });
//
// What no fault may cause is said to the report where it is seen: a wrong byte, an engine that does
// not answer, a process that ends by itself. One thread.
#ifndef PANDO_TESTS_E2E_KILL_CLUSTER_H_
#define PANDO_TESTS_E2E_KILL_CLUSTER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/admin_client.h"
#include "tests/e2e/kill/plan.h"
#include "tests/e2e/kill/report.h"
#include "tests/e2e/process/child.h"
#include "tests/e2e/process/node_process.h"
#include "tests/sim/random.h"

namespace pando::e2e {

inline constexpr int64_t kClaimMillis = 600;      // how long the engines' claims stand
inline constexpr int64_t kAnswer = 10 * kSecond;  // an engine that takes longer hangs
inline constexpr int64_t kMemoryBack = kSecond;   // after a kill

struct EngineSlot {
  std::unique_ptr<Child> child;   // null: dead
  std::string doing;              // the line that it has not answered; empty: idle
  std::vector<std::string> next;  // lines to send before others
  int64_t since = 0;              // of the last line sent
  bool paused = false;            // stopped itself at its step
  int64_t loaded = -1;            // blocks of its last cycle
};

struct Host {
  std::unique_ptr<NodeProcess> node;
  std::unique_ptr<ctl::AdminClient> admin;
  std::array<EngineSlot, kEngines> engines;
  bool up = false;      // the node was started and not killed or stopped by us
  bool paused = false;  // the node stopped itself at its step
  bool quiet = false;   // its engines get nothing new to do
};

class Cluster {
 public:
  // Starts all nodes; no engine yet.
  Cluster(uint64_t seed, Report* report);

  Host& host(size_t i) { return hosts_[i]; }
  EngineSlot& engine(size_t host, size_t i) { return hosts_[host].engines[i]; }

  // Listens, and gives idle engines new prompts, until `done`; false at the deadline.
  bool Drive(int64_t deadline, const std::function<bool()>& done);
  void DriveFor(int64_t nanos);

  // A new engine in this place, that stops itself at `pause` (STEP:N; empty: never). The one before
  // is ended first.
  void StartEngine(size_t host, size_t i, const std::string& pause = "");
  void StartMissingEngines();
  // By the end of its stdin; a violation if it does not end in time.
  void EndEngine(size_t host, size_t i);
  void KillEngine(size_t host, size_t i);
  void KillNode(size_t host);
  void StartNode(size_t host, const std::string& pause = "");

  bool Idle(size_t host) const;
  std::optional<v1::Status> Status(size_t host);
  // What engines have of this node's memory, with `engines` attached; empty: none.
  std::string Leftovers(size_t host, size_t engines);
  size_t LivingEngines(size_t host) const;

 private:
  void Feed();
  void Listen(int64_t until);
  void Hear(size_t host, size_t i);
  void HearLine(size_t host, EngineSlot& engine, const std::string& line);
  void HearNode(size_t host);
  std::string RandomPrompt();
  std::vector<std::string> Flags(size_t host, const std::string& pause) const;

  Report* report_;
  sim::Random random_;
  std::vector<std::string> ports_;
  std::array<Host, kNodes> hosts_;
  uint64_t lives_ = 0;  // of engines
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_CLUSTER_H_
