#include "tests/e2e/kill/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace pando::e2e {
namespace {

double Millis(int64_t nanos) {
  return static_cast<double>(nanos) / 1e6;
}

double MedianMillis(std::vector<int64_t> nanos) {
  if (nanos.empty()) return 0;
  std::nth_element(nanos.begin(), nanos.begin() + static_cast<ptrdiff_t>(nanos.size() / 2),
                   nanos.end());
  return Millis(nanos[nanos.size() / 2]);
}

double WorstMillis(const std::vector<int64_t>& nanos) {
  return nanos.empty() ? 0 : Millis(*std::max_element(nanos.begin(), nanos.end()));
}

std::vector<std::string> NeverReached(const Report& report) {
  std::vector<std::string> steps;
  for (const auto& [step, kills] : report.kills_by_step) {
    if (kills == 0) steps.push_back(step);
  }
  return steps;
}

}  // namespace

void Report::Add(Broken kind, const std::string& what) {
  ++(kind == Broken::kWrongBytes ? wrong_bytes
     : kind == Broken::kHang     ? hangs
     : kind == Broken::kLeak     ? leaks
                                 : others);
  violations.push_back(fmt::format("seed {}, {}: {}", seed, now, what));
  fmt::print(stderr, "broken: {}\n", violations.back());
}

void Report::AddKill(const std::string& where) {
  ++kills;
  ++kills_by_step[where];
}

std::string ToText(const Report& r) {
  std::string text;
  for (const auto& [step, kills] : r.kills_by_step) text += fmt::format("{:6}  {}\n", kills, step);
  text += fmt::format("steps never reached: {}\n", fmt::join(NeverReached(r), " "));
  text += fmt::format(
      "{} requests, {} blocks loaded and {} stored, {} tokens from peers, {} blocks "
      "evicted\n",
      r.requests, r.blocks_loaded, r.blocks_stored, r.hit_peer_tokens, r.evicted_blocks);
  text += fmt::format(
      "memory back after a kill: median {:.0f} ms, worst {:.0f} ms, of a transfer process {:.0f} "
      "and {:.0f} ms; a survivor's request: worst {:.0f} ms; all at base at rest: worst {:.0f} "
      "ms\n",
      MedianMillis(r.back_ns), WorstMillis(r.back_ns), MedianMillis(r.pulls_back_ns),
      WorstMillis(r.pulls_back_ns), Millis(r.worst_answer_ns), Millis(r.worst_rest_ns));
  for (const std::string& violation : r.violations) text += "broken: " + violation + "\n";
  text += fmt::format(
      "seed {}: {} kills of {} and {} stops in {} rounds, {:.1f} s: {} wrong bytes, {} hangs, {} "
      "leaks, "
      "{} others\n",
      r.seed, r.kills, r.kills_asked, r.stops, r.rounds, r.seconds, r.wrong_bytes, r.hangs, r.leaks,
      r.others);
  return text;
}

nlohmann::json ToJson(const Report& r) {
  return {{"seed", r.seed},
          {"rounds", r.rounds},
          {"kills", r.kills},
          {"kills_asked", r.kills_asked},
          {"stops", r.stops},
          {"seconds", r.seconds},
          {"kills_by_step", r.kills_by_step},
          {"never_reached", NeverReached(r)},
          {"requests", r.requests},
          {"blocks_loaded", r.blocks_loaded},
          {"blocks_stored", r.blocks_stored},
          {"hit_host_tokens", r.hit_host_tokens},
          {"hit_peer_tokens", r.hit_peer_tokens},
          {"evicted_blocks", r.evicted_blocks},
          {"wrong_bytes", r.wrong_bytes},
          {"hangs", r.hangs},
          {"leaks", r.leaks},
          {"others", r.others},
          {"back_ms_median", MedianMillis(r.back_ns)},
          {"back_ms_worst", WorstMillis(r.back_ns)},
          {"pulls_back_ms_median", MedianMillis(r.pulls_back_ns)},
          {"pulls_back_ms_worst", WorstMillis(r.pulls_back_ns)},
          {"answer_ms_worst", Millis(r.worst_answer_ns)},
          {"rest_ms_worst", Millis(r.worst_rest_ns)},
          {"violations", r.violations}};
}

}  // namespace pando::e2e
