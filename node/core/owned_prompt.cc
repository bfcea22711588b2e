#include "node/core/owned_prompt.h"

#include <algorithm>
#include <string>
#include <utility>

#include "node/core/limits.h"

namespace pando {

PromptData FirstBlocks(const Prompt& prompt, uint32_t blocks, uint32_t block_tokens) {
  PromptData first;
  const uint64_t tokens = std::min<uint64_t>(uint64_t{blocks} * block_tokens, prompt.tokens.size());
  first.tokens.assign(prompt.tokens.begin(),
                      prompt.tokens.begin() + static_cast<ptrdiff_t>(tokens));
  for (const Segment& segment : prompt.segments) {
    first.segments.push_back({std::string(segment.scope), std::min(segment.end.value(), tokens)});
    if (segment.end.value() >= tokens) break;
  }
  for (const BlockExtra& extra : prompt.extras) {
    if (extra.block.value() >= blocks) break;
    first.extras.push_back({extra.block.value(), std::string(extra.bytes)});
  }
  return first;
}

OwnedPrompt::OwnedPrompt(PromptData data) : data_(std::move(data)) {
  segments_.reserve(data_.segments.size());
  for (const auto& segment : data_.segments) {
    other_bytes_ += 64 + segment.scope.size();
    segments_.push_back({segment.scope, TokenCount(segment.end)});
  }
  extras_.reserve(data_.extras.size());
  for (const auto& extra : data_.extras) {
    other_bytes_ += 64 + extra.bytes.size();
    extras_.push_back({BlockCount(extra.block), extra.bytes});
  }
}

std::optional<Problem> OwnedPrompt::CheckLimits() const {
  if (data_.tokens.size() > limits::kTokensPerPrompt) {
    return OverLimit("tokens", data_.tokens.size(), limits::kTokensPerPrompt, "in one prompt",
                     "serve it without the cache");
  }
  if (segments_.size() > limits::kSegments) {
    return OverLimit("segments", segments_.size(), limits::kSegments, "in one prompt",
                     "join segments of one scope");
  }
  for (const Segment& segment : segments_) {
    if (segment.scope.size() > limits::kScopeBytes) {
      return OverLimit("bytes", segment.scope.size(), limits::kScopeBytes, "in a scope's name",
                       "choose a shorter one");
    }
  }
  for (const BlockExtra& extra : extras_) {
    if (extra.bytes.size() > limits::kExtraBytes) {
      return OverLimit("bytes", extra.bytes.size(), limits::kExtraBytes, "in one block's extra",
                       "send a digest instead");
    }
  }
  return std::nullopt;
}

std::optional<Problem> OwnedPrompt::Check(uint32_t block_tokens) const {
  if (auto problem = CheckLimits()) return problem;
  std::string wrong = ValidatePrompt(view(), block_tokens);
  if (!wrong.empty()) return Invalid(std::move(wrong));
  return std::nullopt;
}

void OwnedPrompt::Append(std::span<const uint32_t> tokens) {
  data_.tokens.insert(data_.tokens.end(), tokens.begin(), tokens.end());
  if (!segments_.empty()) segments_.back().end = TokenCount(data_.tokens.size());
}

}  // namespace pando
