// pando-sim: simulated hours of clusters with faults, each drawn from a seed, or one short life.
// Exits with 1 if a promise was broken, with 2 if it was asked for what it cannot do.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/sim/apart.h"
#include "tests/sim/hours.h"
#include "tests/sim/replay.h"
#include "tests/sim/shrink.h"

namespace {

using pando::sim::Coverage;
using pando::sim::Decision;
using pando::sim::HourOptions;
using pando::sim::Outcome;
using pando::sim::Replay;
using pando::sim::SimulationOptions;
using pando::sim::SimulationReport;
using Trace = std::vector<pando::model::TraceRequest>;

constexpr uint64_t kShrinkRuns = 400;
constexpr unsigned kShrinkSeconds = 60;  // a run may take

struct Arguments {
  uint64_t hours = 0, from = 0;
  std::string json, replay, shrunk = "pando-sim.txt";
  bool coverage = true;
  HourOptions hour;
  SimulationOptions life;
};

// Of all hours.
struct Sums {
  uint64_t hours = 0, short_hours = 0, hash = 0, events = 0, steps = 0, requests = 0, faults = 0;
  Coverage::Counts coverage;
  std::string violation;

  void Add(const Outcome& outcome, bool counts) {
    (counts ? hours : short_hours) += 1;
    hash = pando::sim::Mix(hash, outcome.hash);
    events += outcome.events;
    steps += outcome.steps;
    requests += outcome.requests;
    faults += outcome.faults;
    coverage.Add(outcome.coverage);
  }
};

bool Counts(const SimulationOptions& options, const Outcome& outcome) {
  return options.nodes >= pando::sim::kHourNodes && outcome.requests >= pando::sim::kHourRequests &&
         outcome.faults >= pando::sim::kHourFaults;
}

// ---- A violation

void SayViolation(const Outcome& outcome) {
  std::fprintf(stderr, "broken: %s\n", outcome.violation.c_str());
  if (!outcome.said.empty()) std::fprintf(stderr, "%s\n", outcome.said.c_str());
}

void ShrinkToFile(const Arguments& arguments, const HourOptions& hour, const Outcome& failed) {
  std::fprintf(stderr, "shrinking %zu decisions\n", failed.decisions.size());
  Replay replay{failed.violation, hour, failed.decisions};
  const auto stays = [&](const std::vector<Decision>& decisions) {
    Replay smaller{"", hour, decisions};
    smaller.violation = RunApart(smaller.Options(), kShrinkSeconds).violation;
    if (!pando::sim::SameViolation(smaller.violation, failed.violation)) return false;
    std::fprintf(stderr, "  %zu\n", decisions.size());
    replay = std::move(smaller);
    return true;
  };
  pando::sim::Shrink(failed.decisions, kShrinkRuns, stays);
  std::ofstream(arguments.shrunk) << Text(replay);
  std::fprintf(stderr, "%zu decisions are enough: pando-sim --replay %s\n", replay.decisions.size(),
               arguments.shrunk.c_str());
}

// ---- Hours

Sums RunHours(const Arguments& arguments) {
  Sums sums;
  HourOptions hour = arguments.hour;
  for (uint64_t i = 0; i < arguments.hours; ++i) {
    hour.hour = arguments.from + i;
    const SimulationOptions options = DrawHour(hour);
    const Outcome outcome = RunApart(options);
    sums.Add(outcome, Counts(options, outcome));
    if (outcome.violation.empty()) continue;
    sums.violation = outcome.violation;
    std::fprintf(stderr, "seed %" PRIu64 ", hour %" PRIu64 ":\n", hour.seed, hour.hour);
    SayViolation(outcome);
    ShrinkToFile(arguments, hour, outcome);
    break;
  }
  return sums;
}

void WriteJson(const Arguments& arguments, const Sums& sums, double seconds) {
  nlohmann::json seen = nlohmann::json::object();
  for (const auto& [name, times] : sums.coverage.Named()) seen[name] = times;
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016" PRIx64, sums.hash);
  const nlohmann::json json{{"seed", arguments.hour.seed},
                            {"from", arguments.from},
                            {"hours", sums.hours},
                            {"hours_too_short", sums.short_hours},
                            {"hash", hash},
                            {"violations", sums.violation.empty() ? 0 : 1},
                            {"violation", sums.violation},
                            {"hours_per_second", static_cast<double>(sums.hours) / seconds},
                            {"events", sums.events},
                            {"steps", sums.steps},
                            {"requests", sums.requests},
                            {"faults", sums.faults},
                            {"seen", seen}};
  std::ofstream(arguments.json) << json.dump(2) << '\n';
}

int SimulateHours(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const Sums sums = RunHours(arguments);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (arguments.coverage) std::printf("%s\n", sums.coverage.Text().c_str());
  std::printf("seed %" PRIu64 "  hours %" PRIu64 "  too little load or faults to count %" PRIu64
              "  requests %" PRIu64 "  faults %" PRIu64 "\n",
              arguments.hour.seed, sums.hours, sums.short_hours, sums.requests, sums.faults);
  std::printf("events %" PRIu64 "  steps %" PRIu64 "  hours/s %.2f  violations %d  hash %016" PRIx64
              "\n",
              sums.events, sums.steps, static_cast<double>(sums.hours) / took.count(),
              sums.violation.empty() ? 0 : 1, sums.hash);
  if (!arguments.json.empty()) WriteJson(arguments, sums, took.count());
  return sums.violation.empty() ? 0 : 1;
}

// ---- One life

int SayLife(const SimulationReport& report, uint64_t seed) {
  std::printf("seed %" PRIu64 "  steps %" PRIu64 "  events %" PRIu64 "  requests %" PRIu64
              "  blocks loaded %" PRIu64 "  deaths %" PRIu64 "  faults %" PRIu64 "\n",
              seed, report.steps, report.events, report.requests, report.blocks_loaded,
              report.deaths, report.faults);
  std::printf("blocks awaited %" PRIu64 "  pages fetched %" PRIu64 "  pulled bad %" PRIu64
              "  feeds broken %" PRIu64 "\n",
              report.awaited_blocks, report.fetched_pages, report.bad_pages_pulled,
              report.feeds_broken);
  const auto& counters = report.status.counters;
  std::printf("claims expired %" PRIu64 "  pages bad %" PRIu64 "  full %" PRIu64
              "  over the quarantine cap %" PRIu64 "  refused %" PRIu64 "\n",
              counters.claims_expired, counters.pages_bad, counters.reserve_full,
              counters.quarantine_refused, counters.requests_refused.total());
  std::printf("hash %016" PRIx64 "\n", report.hash);
  for (const std::string& failure : report.first_failures) {
    std::fprintf(stderr, "broken: %s\n", failure.c_str());
  }
  return report.failures == 0 ? 0 : 1;
}

int RunReplay(const Arguments& arguments) {
  std::ostringstream text;
  text << std::ifstream(arguments.replay).rdbuf();
  auto replay = pando::sim::ParseReplay(text.str());
  if (!replay.ok()) {
    std::fprintf(stderr, "%s: %s\n", arguments.replay.c_str(),
                 std::string(replay.status().message()).c_str());
    return 2;
  }
  replay->hour.trace = arguments.hour.trace;
  return SayLife(Simulate(replay->Options()), replay->hour.seed);
}

void AddOptions(CLI::App* app, Arguments* arguments, std::string* faults) {
  SimulationOptions& life = arguments->life;
  app->add_option("--seed", arguments->hour.seed, "where all chance comes from")
      ->capture_default_str();
  app->add_option("--hours", arguments->hours, "simulated hours; 0: one life of --steps");
  app->add_option("--from", arguments->from, "the number of the first hour")->capture_default_str();
  app->add_option("--nodes", arguments->hour.nodes, "that share what they hold; 0: as drawn, or 1")
      ->check(CLI::Range(0, 16));
  app->add_option(
         "--faults", *faults,
         "names joined by commas, or all; hours draw their own mix without it. There are: " +
             pando::sim::FaultNames())
      ->check([](const std::string& list) {
        return pando::sim::ParseFaults(list) ? "" : "one of its names is none of a fault";
      });
  app->add_option("--json", arguments->json, "writes what the hours came to");
  app->add_option("--shrunk", arguments->shrunk, "where the decisions go that break a promise")
      ->capture_default_str();
  app->add_option("--replay", arguments->replay, "plays such a file");
  app->add_flag("!--no-coverage", arguments->coverage, "no tables of what was seen");
  app->add_option("--steps", life.steps, "of one life: inputs to the cores")->capture_default_str();
  app->add_option("--replicas", life.replicas, "of one life: engines on each host")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app->add_option("--extents", life.extents, "of one life: 64 MiB pieces of the slab")
      ->capture_default_str()
      ->check(CLI::Range(4, 4096));
  app->add_option("--check-every", life.check_every, "of one life: steps between two self-checks")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app->add_flag("--collide", life.collide, "of one life: all keys of the tree are equal");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  std::string faults;
  CLI::App app("Simulates clusters and their engines: deaths, delays, deadlines, one seed.");
  AddOptions(&app, &arguments, &faults);
  CLI11_PARSE(app, argc, argv);
  if (!faults.empty()) arguments.hour.faults = pando::sim::ParseFaults(faults);
  const Trace trace = pando::model::ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz");
  if (trace.empty()) {
    std::fprintf(stderr, "found no trace at %s\n", PANDO_TEST_DATA);
    return 2;
  }
  arguments.hour.trace = &trace;
  if (!arguments.replay.empty()) return RunReplay(arguments);
  if (arguments.hours > 0) return SimulateHours(arguments);
  SimulationOptions& life = arguments.life;
  life.seed = arguments.hour.seed;
  life.nodes = std::max<uint32_t>(arguments.hour.nodes, 1);
  life.faults = arguments.hour.faults.value_or(life.faults);
  return SayLife(Simulate(life), life.seed);
}
