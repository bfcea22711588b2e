// The trade's own programs beside ours: both resend one buffer that stays in the cache, so they
// show about twice of what scattered pages reach.
#include <cstdlib>
#include <sstream>

#include "tests/bench/pull_bench_peer.h"

namespace pando::bench {
namespace {

// Its stdout; "" if it could not be run.
std::string OutputOf(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  char piece[4096];
  while (const size_t size = std::fread(piece, 1, sizeof(piece), pipe)) text.append(piece, size);
  return pclose(pipe) == 0 ? text : "";
}

bool Has(const std::string& program) {
  return !OutputOf("command -v " + program).empty();
}

void AddRow(Report* report, const std::string& name, double value, const std::string& reference) {
  report->Add({.name = name,
               .value = value,
               .unit = "GB/s",
               .at_most = {},
               .at_least = {},
               .reference = reference});
}

double Iperf() {
  const std::string json = OutputOf(
      "iperf3 -s -1 -B 127.0.0.1 -p 47811 -A 0 >/dev/null 2>&1 & sleep 0.5; "
      "timeout 20 iperf3 -c 127.0.0.1 -p 47811 -t 2 -A 1 -J 2>/dev/null; wait");
  const auto result = nlohmann::json::parse(json, nullptr, false);
  const auto rate = nlohmann::json::json_pointer("/end/sum_received/bits_per_second");
  return result.is_object() && result.contains(rate) ? result[rate].get<double>() / 8e9 : 0;
}

// Bandwidth of active messages of this size.
double Perftest(size_t kib) {
  const std::string run = "UCX_TLS=tcp UCX_NET_DEVICES=lo timeout 20 taskset -c ";
  const std::string text =
      OutputOf(run + "0 ucx_perftest -p 47812 >/dev/null 2>&1 & sleep 0.5; " + run +
               "1 ucx_perftest 127.0.0.1 -p 47812 -t ucp_am_bw -f -n 2000 -w 200 -s " +
               std::to_string(kib << 10) + " 2>/dev/null; wait");
  // -f prints the final line alone: iterations, 3 latencies, 2 bandwidths in MB/s, 2 rates.
  std::string final_line;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_of("0123456789") != std::string::npos) final_line = line;
  }
  std::istringstream words(final_line);
  std::string word;
  double value = 0;
  for (int column = 0; words >> word; ++column) {
    if (word == "Final:") --column;
    if (column == 4) value = std::atof(word.c_str());
  }
  return value / 1000;
}

}  // namespace

void AddHotBufferPrograms(Report* report) {
  if (Has("iperf3")) {
    AddRow(report, "pull/iperf3", Iperf(), "one stream, one hot buffer");
  } else {
    std::printf("pull/iperf3: not installed (package iperf3)\n");
  }
  if (!Has("ucx_perftest")) {
    std::printf("pull/ucx_perftest: not installed (package ucx-utils)\n");
    return;
  }
  for (const size_t kib : {64u, 256u, 1024u}) {
    AddRow(report, "pull/ucx_perftest_" + std::to_string(kib) + "k", Perftest(kib),
           "ucp_am_bw, one hot buffer");
  }
}

}  // namespace pando::bench
