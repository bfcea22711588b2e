#include "node/core/owned_prompt.h"

#include <string>
#include <utility>

#include "node/core/limits.h"

namespace pando {

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
