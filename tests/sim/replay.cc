#include "tests/sim/replay.h"

#include <sstream>

namespace pando::sim {
namespace {

constexpr const char* kDrawn = "drawn";

bool Take(const std::string& key, std::istringstream* rest, Replay* replay) {
  if (key == "seed") return static_cast<bool>(*rest >> replay->hour.seed);
  if (key == "hour") return static_cast<bool>(*rest >> replay->hour.hour);
  if (key == "nodes") return static_cast<bool>(*rest >> replay->hour.nodes);
  if (key == "faults") {
    std::string list;
    *rest >> list;
    if (list == kDrawn) return true;
    replay->hour.faults = ParseFaults(list);
    return replay->hour.faults.has_value();
  }
  if (key != "decisions") return false;
  char colon = 0;
  for (Decision decision; *rest >> decision.source >> colon >> decision.ordinal;) {
    replay->decisions.push_back(decision);
  }
  return rest->eof();
}

}  // namespace

SimulationOptions Replay::Options() const {
  SimulationOptions options = DrawHour(hour);
  options.only.emplace(decisions.begin(), decisions.end());
  return options;
}

std::string Text(const Replay& replay) {
  std::ostringstream text;
  text << "# " << replay.violation << "\nseed " << replay.hour.seed << "\nhour " << replay.hour.hour
       << "\nnodes " << replay.hour.nodes << "\nfaults "
       << (replay.hour.faults ? Text(*replay.hour.faults) : kDrawn) << "\ndecisions";
  for (const Decision& decision : replay.decisions) {
    text << ' ' << decision.source << ':' << decision.ordinal;
  }
  text << '\n';
  return std::move(text).str();
}

absl::StatusOr<Replay> ParseReplay(const std::string& text) {
  Replay replay;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.front() == '#') {
      replay.violation = line.substr(std::min<size_t>(2, line.size()));
      continue;
    }
    std::istringstream rest(line);
    std::string key;
    rest >> key;
    if (!Take(key, &rest, &replay)) {
      return absl::InvalidArgumentError("found \"" + line.substr(0, 80) +
                                        "\", expected seed, hour, nodes, faults or decisions");
    }
  }
  return replay;
}

}  // namespace pando::sim
