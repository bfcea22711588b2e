// pando-sim: one simulation from a seed; exits with 1 if a promise was broken.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>

#include "tests/sim/simulator.h"

int main(int argc, char** argv) {
  pando::sim::SimulationOptions options;
  CLI::App app("Simulates nodes and their replicas: deaths, delays, deadlines, one seed.");
  app.add_option("--seed", options.seed, "where all chance comes from")->capture_default_str();
  app.add_option("--steps", options.steps, "inputs to the cores")->capture_default_str();
  app.add_option("--nodes", options.nodes, "nodes that share what they hold")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--replicas", options.replicas, "engines on each host")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--extents", options.extents, "64 MiB pieces of the slab")
      ->capture_default_str()
      ->check(CLI::Range(2, 4096));
  app.add_option("--check-every", options.check_every, "steps between two self-checks")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--collide", options.collide, "all keys of the tree are equal");
  CLI11_PARSE(app, argc, argv);

  const pando::sim::SimulationReport report = pando::sim::Simulate(options);
  std::printf("seed %" PRIu64 "  steps %" PRIu64 "  requests %" PRIu64 "  blocks loaded %" PRIu64
              "  deaths %" PRIu64 "\n",
              options.seed, report.steps, report.requests, report.blocks_loaded, report.deaths);
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
