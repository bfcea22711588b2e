// Prompts made of a small tree of shared parts (system prompts, documents of a corpus, questions of
// tenants), and those of a real trace, a block of a few tokens for each of its blocks. Each knows
// the hash of every one of its prefixes, scopes included, by a function of its own. One thread.
#ifndef PANDO_TESTS_SIM_WORKLOAD_H_
#define PANDO_TESTS_SIM_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "node/core/messages.h"
#include "tests/model/trace.h"
#include "tests/sim/random.h"

namespace pando::sim {

inline constexpr uint32_t kBlockTokens = 8;

struct SimPrompt {
  PromptData data;
  std::vector<uint64_t> prefixes;  // of each full block

  uint32_t blocks() const { return static_cast<uint32_t>(prefixes.size()); }
  void AddSegment(const std::string& scope, uint64_t part, uint64_t tokens);
  // Decoded tokens, in the last scope.
  std::vector<uint32_t> Grow(uint64_t part, uint64_t tokens);

 private:
  void Extend();
};

SimPrompt RandomPrompt(Random* random);
// Nobody else's, of so many blocks and a token.
SimPrompt FreshPrompt(uint64_t part, uint64_t blocks);

class Workload {
 public:
  // `trace`: may be null, or outlives this; of it the requests near `at` are played.
  Workload(const std::vector<model::TraceRequest>* trace, uint64_t at) : trace_(trace), at_(at) {}

  SimPrompt Draw(Random* random) const;

 private:
  SimPrompt OfTrace(const model::TraceRequest& request) const;

  const std::vector<model::TraceRequest>* trace_;
  uint64_t at_;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_WORKLOAD_H_
