// What a benchmark says: each figure beside its goal and its reference, measured in the same run.
//
//   Report report(argc, argv);              // --json FILE
//   report.Add({.name = "radix/evict_50k", .value = ns, .unit = "ns", .at_most = 300,
//               .reference = "goal of 300 ns a block"});
//   return report.Finish();                 // prints the table, writes the file
//
// Owner: one thread. A figure that misses its goal is printed as such and is no error: speed is not
// a test.
#ifndef PANDO_TESTS_BENCH_FIGURE_H_
#define PANDO_TESTS_BENCH_FIGURE_H_

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pando::bench {

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> at_most, at_least;  // the goal, in the figure's unit; none: printed only
  std::string reference;                    // what it was measured against, with its own figure
};

class Report {
 public:
  Report(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i) {
      if (std::string(argv[i]) == "--json") json_path_ = argv[i + 1];
    }
    std::printf("%-46s %14s %-10s %-14s %-4s %s\n", "figure", "value", "unit", "goal", "met",
                "reference");
  }

  void Add(const Figure& figure) {
    std::string goal;
    bool met = true;
    if (figure.at_most) {
      goal = "<= " + Number(*figure.at_most);
      met = figure.value <= *figure.at_most;
    } else if (figure.at_least) {
      goal = ">= " + Number(*figure.at_least);
      met = figure.value >= *figure.at_least;
    }
    std::printf("%-46s %14s %-10s %-14s %-4s %s\n", figure.name.c_str(),
                Number(figure.value).c_str(), figure.unit.c_str(), goal.c_str(),
                goal.empty() ? "" : (met ? "yes" : "NO"), figure.reference.c_str());
    std::fflush(stdout);
    rows_.push_back({{"name", figure.name},
                     {"value", figure.value},
                     {"unit", figure.unit},
                     {"goal", goal},
                     {"reference", figure.reference},
                     {"met", met}});
  }

  // The process's exit status.
  int Finish() const {
    if (json_path_.empty()) return 0;
    std::ofstream out(json_path_);
    out << rows_.dump(2) << "\n";
    return out.good() ? 0 : 1;
  }

 private:
  static std::string Number(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), value >= 1000 ? "%.0f" : "%.4g", value);
    return text;
  }

  std::string json_path_;
  nlohmann::json rows_ = nlohmann::json::array();
};

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_FIGURE_H_
