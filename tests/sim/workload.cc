#include "tests/sim/workload.h"

namespace pando::sim {
namespace {

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
  if (random->OneIn(4)) prompt.Grow(random->Next(), random->Below(20) + 1);
  return prompt;
}

}  // namespace pando::sim
