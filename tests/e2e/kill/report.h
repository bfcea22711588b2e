// What a marathon came to. One thread.
#ifndef PANDO_TESTS_E2E_KILL_REPORT_H_
#define PANDO_TESTS_E2E_KILL_REPORT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pando::e2e {

enum class Broken : uint8_t { kWrongBytes, kHang, kLeak, kOther };

struct Report {
  uint64_t seed = 0, rounds = 0, kills = 0, kills_asked = 0, stops = 0;
  uint64_t requests = 0, blocks_loaded = 0, blocks_stored = 0;
  uint64_t hit_host_tokens = 0, hit_peer_tokens = 0, evicted_blocks = 0;  // of lives seen at rest
  uint64_t wrong_bytes = 0, hangs = 0, leaks = 0, others = 0;
  double seconds = 0;
  std::map<std::string, uint64_t> kills_by_step;  // all names; 0: never reached
  std::vector<int64_t> back_ns;                   // of each kill, until its memory was back
  std::vector<int64_t> pulls_back_ns;             // the same, of transfer processes
  int64_t worst_answer_ns = 0;                    // of a survivor
  int64_t worst_rest_ns = 0;  // until all was at base, once all engines had ended
  std::string now;            // the round under way, for what breaks in it
  std::vector<std::string> violations;

  void Add(Broken kind, const std::string& what);
  // At a step of the list, or in words: "an engine, at any moment".
  void AddKill(const std::string& where);
  bool ok() const { return violations.empty(); }
};

std::string ToText(const Report& report);
nlohmann::json ToJson(const Report& report);

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_REPORT_H_
