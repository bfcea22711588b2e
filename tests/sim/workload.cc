#include "tests/sim/workload.h"

#include <algorithm>

namespace pando::sim {
namespace {

constexpr uint64_t kTraceWindow = 300;     // requests
constexpr size_t kTraceBlocksMax = 24;     // of one prompt
constexpr uint64_t kTracePart = 1u << 20;  // the first

uint32_t Token(uint64_t part, uint64_t index) {
  // Few different ones, so that blocks of different parts can look alike.
  return static_cast<uint32_t>(Mix(part, index) % 3);
}

uint64_t HashText(const std::string& text) {
  uint64_t hash = text.size();
  for (char c : text) hash = Mix(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

void SimPrompt::AddSegment(const std::string& scope, uint64_t part, uint64_t tokens) {
  for (uint64_t i = 0; i < tokens; ++i) data.tokens.push_back(Token(part, i));
  data.segments.push_back({scope, data.tokens.size()});
  Extend();
}

std::vector<uint32_t> SimPrompt::Grow(uint64_t part, uint64_t tokens) {
  std::vector<uint32_t> grown;
  for (uint64_t i = 0; i < tokens; ++i) grown.push_back(Token(part, i));
  data.tokens.insert(data.tokens.end(), grown.begin(), grown.end());
  data.segments.back().end = data.tokens.size();
  Extend();
  return grown;
}

// A block belongs to the scope of its last token.
void SimPrompt::Extend() {
  while ((prefixes.size() + 1) * kBlockTokens <= data.tokens.size()) {
    const uint64_t begin = prefixes.size() * kBlockTokens;
    uint64_t hash = prefixes.empty() ? 1 : prefixes.back();
    for (uint64_t i = begin; i < begin + kBlockTokens; ++i) hash = Mix(hash, data.tokens[i]);
    size_t segment = 0;
    while (data.segments[segment].end < begin + kBlockTokens) ++segment;
    prefixes.push_back(Mix(hash, HashText(data.segments[segment].scope)));
  }
}

SimPrompt RandomPrompt(Random* random) {
  SimPrompt prompt;
  const uint64_t system = random->Below(3);
  prompt.AddSegment("", 100 + system, 5 + 7 * system);
  if (!random->OneIn(3)) {
    const uint64_t document = random->Below(5);
    prompt.AddSegment("corpus", 200 + document, 16 + 9 * document);
  }
  const uint64_t tenant = random->Below(2);
  const uint64_t question = random->Below(8);
  prompt.AddSegment(tenant == 0 ? "tenant/a" : "tenant/b", 300 + question, 3 + 4 * question);
  if (random->OneIn(4)) {
    const uint64_t part = random->Next();
    prompt.Grow(part, random->Below(20) + 1);
  }
  return prompt;
}

SimPrompt FreshPrompt(uint64_t part, uint64_t blocks) {
  SimPrompt prompt;
  prompt.AddSegment("fresh/" + std::to_string(part), part, blocks * kBlockTokens + 1);
  return prompt;
}

SimPrompt Workload::Draw(Random* random) const {
  if (trace_ == nullptr || random->OneIn(2)) return RandomPrompt(random);
  return OfTrace((*trace_)[(at_ + random->Below(kTraceWindow)) % trace_->size()]);
}

SimPrompt Workload::OfTrace(const model::TraceRequest& request) const {
  SimPrompt prompt;
  prompt.AddSegment("trace", 0, 1);
  const size_t blocks = std::min(request.full_ids(), kTraceBlocksMax);
  for (size_t b = 0; b < blocks; ++b) {
    prompt.Grow(kTracePart + request.hash_ids[b], kBlockTokens);
  }
  prompt.Grow(kTracePart + request.input_length, 1 + request.input_length % kBlockTokens);
  return prompt;
}

}  // namespace pando::sim
