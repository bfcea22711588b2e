#include "tests/e2e/kill/marathon.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "client/steps.h"
#include "tests/e2e/kill/cluster.h"
#include "tests/e2e/kill/plan.h"
#include "tests/e2e/kill/rest.h"
#include "tests/e2e/kill/rounds.h"

namespace pando::e2e {
namespace {

constexpr uint64_t kRestEvery = 20;  // rounds
constexpr int64_t kProgressEvery = 10 * kSecond;

std::vector<std::string> AllSteps() {
  std::vector<std::string> steps(client::StepNames().begin(), client::StepNames().end());
  std::istringstream lines(
      RunToEnd({BinaryPath("pando-node"), "--list-steps"}, Now() + kAnswer).value_or(""));
  for (std::string line; std::getline(lines, line);) steps.push_back(line);
  return steps;
}

// All rounds, and a rest before, between and after them.
void Run(const MarathonOptions& options, const std::vector<std::string>& steps, Report* report) {
  const Planner planner(options.seed, steps);
  Cluster cluster(options.seed, report);
  Rest rest(&cluster, report);
  Rounds rounds(&cluster, report);
  const int64_t start = Now();
  int64_t said = start;
  rest.Run();
  for (uint64_t round = options.first_round; report->kills < options.kills; ++round) {
    if (options.seconds != 0 && Now() - start > options.seconds * kSecond) break;
    rounds.Run(planner.Draw(round));
    if (report->rounds % kRestEvery == 0) rest.Run();
    if (!options.progress || Now() - said < kProgressEvery) continue;
    said = Now();
    fmt::print(stderr, "{} s: {} kills, {} requests, {} violations\n", (said - start) / kSecond,
               report->kills, report->requests, report->violations.size());
  }
  rest.End();
}

}  // namespace

Report RunMarathon(const MarathonOptions& options) {
  setenv("UCX_TLS", "tcp", 1);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Report report;
  report.seed = options.seed;
  report.kills_asked = options.kills;
  report.now = "the begin";
  const std::vector<std::string> steps = AllSteps();
  for (const std::string& step : steps) report.kills_by_step[step] = 0;
  const int64_t start = Now();
  Run(options, steps, &report);
  report.seconds = static_cast<double>(Now() - start) / 1e9;
  return report;
}

}  // namespace pando::e2e
