// What each round of the marathon does: drawn from the seed and the round's number alone, so that
// a round is the same whatever came before it. Immutable; any thread.
#ifndef PANDO_TESTS_E2E_KILL_PLAN_H_
#define PANDO_TESTS_E2E_KILL_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pando::e2e {

inline constexpr size_t kNodes = 3;
inline constexpr size_t kEngines = 2;  // on each node

enum class Victim : uint8_t { kEngine, kNode, kTransfer };
enum class How : uint8_t { kKill, kStopThenKill, kStopThenContinue };

struct Plan {
  uint64_t round = 0;
  Victim victim = Victim::kEngine;
  How how = How::kKill;
  size_t node = 0, engine = 0;
  std::string step;         // empty: at a moment
  uint64_t occurrence = 1;  // of the step, in the victim's life
  int64_t moment_ns = 0;    // after the round's begin
};

// For a person: "round 7: kill engine 1 of node 2 at client.begun:3".
std::string ToString(const Plan& plan);

class Planner {
 public:
  // The steps of clients (their names begin with "client.") and of nodes.
  Planner(uint64_t seed, std::vector<std::string> steps);

  // Three rounds of four are at a step, and every step has its turn before one has its second.
  Plan Draw(uint64_t round) const;

 private:
  const std::string& StepOf(uint64_t turn) const;

  uint64_t seed_;
  std::vector<std::string> steps_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_PLAN_H_
