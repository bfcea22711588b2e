#include "tests/fuzz/prompts.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace pando::fuzz {
namespace {

constexpr uint32_t kFamilyTokens = 1'000, kWayTokens = 100'000, kMoreTokens = 10'000'000;

void AddSegments(uint32_t form, uint64_t tokens, PromptData* prompt) {
  switch (form % 4) {
    case 0:
      return;
    case 1:
      prompt->segments = {{"", tokens / 2}, {"a", tokens}};
      return;
    case 2:
      prompt->segments = {{"", tokens / 3}, {"corpus", 2 * tokens / 3}, {"b", tokens}};
      return;
    default:
      prompt->segments = {{std::string(form, 'x'), tokens + form / 64}};
      if (form == 0xff) prompt->segments.resize(form);
  }
}

void AddExtras(uint32_t form, PromptData* prompt) {
  const uint32_t block = form >> 4;
  switch (form >> 2 & 3) {
    case 0:
      return;
    case 1:
      prompt->extras = {{block, "e"}};
      return;
    case 2:
      prompt->extras = {{0, "e"}, {block, "ff"}};
      return;
    default:
      prompt->extras = {{block, std::string(5'000, 'e')}};
  }
}

uint64_t MixText(uint64_t hash, std::string_view text) {
  hash = sim::Mix(hash, text.size());
  for (const char c : text) hash = sim::Mix(hash, static_cast<unsigned char>(c));
  return hash;
}

// The scope of the segment that the block's last token is in.
std::string_view ScopeOf(const PromptData& prompt, uint64_t last_token) {
  for (const auto& segment : prompt.segments) {
    if (segment.end > last_token) return segment.scope;
  }
  return "";
}

}  // namespace

PromptData PromptOf(const Operation& operation) {
  PromptData prompt;
  const uint32_t family = operation.prompt & 3, way = operation.prompt >> 5;
  const uint32_t parts = 2 * (operation.prompt >> 2 & 7);
  for (uint32_t i = 0; i < operation.tokens; ++i) {
    const bool own = parts > 0 && i >= parts;
    prompt.tokens.push_back(family * kFamilyTokens + i + (own ? (1 + way) * kWayTokens : 0));
  }
  AddSegments(operation.form, operation.tokens, &prompt);
  AddExtras(operation.form, &prompt);
  return prompt;
}

std::vector<uint32_t> MoreTokens(const Operation& operation) {
  std::vector<uint32_t> tokens(operation.tokens);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = kMoreTokens + operation.prompt + i;
  return tokens;
}

std::vector<sim::Stamp> StampsOf(const std::string& identity, uint32_t block_tokens, uint32_t shard,
                                 const PromptData& prompt) {
  std::vector<sim::Stamp> stamps;
  if (block_tokens == 0) return stamps;
  const uint64_t space = MixText(0, identity);
  uint64_t prefix = 0;
  auto extra = prompt.extras.begin();
  for (uint64_t begin = 0; begin + block_tokens <= prompt.tokens.size(); begin += block_tokens) {
    const uint64_t end = begin + block_tokens;
    prefix = MixText(prefix, ScopeOf(prompt, end - 1));
    for (uint64_t i = begin; i < end; ++i) prefix = sim::Mix(prefix, prompt.tokens[i]);
    if (extra != prompt.extras.end() && extra->block == stamps.size()) {
      prefix = MixText(prefix, (extra++)->bytes);
    }
    stamps.push_back({space, prefix, shard});
  }
  return stamps;
}

Nanos NanosOf(uint8_t time) {
  return Nanos{1} << time % 43;
}

Nanos DeadlineOf(uint8_t time, Nanos now) {
  if (time == 0) return 0;
  if (time >= 240) return std::max<Nanos>(now - NanosOf(time), 1);
  return now + NanosOf(time);
}

}  // namespace pando::fuzz
