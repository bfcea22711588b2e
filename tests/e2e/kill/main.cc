// pando-kills: kills real processes, one after another, at named steps and at any moment; exits
// with 1 if a promise was broken.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/e2e/kill/marathon.h"

int main(int argc, char** argv) {
  pando::e2e::MarathonOptions options{.progress = true};
  std::string json;
  CLI::App app("Kills engines, nodes and transfer processes of a small cluster that lives on.");
  app.add_option("--kills", options.kills, "how many")->capture_default_str();
  app.add_option("--seed", options.seed, "where all choice comes from")->capture_default_str();
  app.add_option("--round", options.first_round, "begin with this one, to repeat it")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "end after so long; 0: after all kills")
      ->capture_default_str();
  app.add_option("--json", json, "write what it came to");
  CLI11_PARSE(app, argc, argv);

  const pando::e2e::Report report = pando::e2e::RunMarathon(options);
  std::fputs(ToText(report).c_str(), stdout);
  if (!json.empty()) std::ofstream(json) << ToJson(report).dump(2) << '\n';
  return report.ok() ? 0 : 1;
}
