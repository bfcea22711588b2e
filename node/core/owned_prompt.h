// A prompt from outside, kept as it came, and the view of it that the cache wants.
//
// The view's segments and extras point into the owned strings, so the object stays where it was
// made. Owner thread only.
#ifndef PANDO_NODE_CORE_OWNED_PROMPT_H_
#define PANDO_NODE_CORE_OWNED_PROMPT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "node/core/messages.h"
#include "node/core/problem.h"
#include "radix/prefix_cache.h"

namespace pando {

// The first blocks of a prompt, with what shapes them.
PromptData FirstBlocks(const Prompt& prompt, uint32_t blocks, uint32_t block_tokens);

class OwnedPrompt {
 public:
  explicit OwnedPrompt(PromptData data);
  OwnedPrompt(const OwnedPrompt&) = delete;
  OwnedPrompt& operator=(const OwnedPrompt&) = delete;

  // What is wrong with it, if anything: limits.h and the form that the cache asks for.
  std::optional<Problem> Check(uint32_t block_tokens) const;

  // Adds tokens to the last segment's scope.
  void Append(std::span<const uint32_t> tokens);

  Prompt view() const { return {data_.tokens, segments_, extras_}; }
  uint64_t tokens() const { return data_.tokens.size(); }
  // What it keeps: 4 a token, the names, the extra bytes, and 64 for each of these and itself.
  uint64_t bytes() const { return tokens() * sizeof(uint32_t) + other_bytes_; }

 private:
  std::optional<Problem> CheckLimits() const;

  PromptData data_;
  uint64_t other_bytes_ = 64;  // beside the tokens
  std::vector<Segment> segments_;
  std::vector<BlockExtra> extras_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_OWNED_PROMPT_H_
