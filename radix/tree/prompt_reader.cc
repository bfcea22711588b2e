#include "radix/tree/prompt_reader.h"

#include <algorithm>
#include <string>

#include "radix/base/check.h"

namespace pando {

PromptReader::PromptReader(const Prompt& prompt, uint32_t block_tokens)
    : prompt_(prompt), block_tokens_(block_tokens) {
  blocks_ = static_cast<uint32_t>(prompt.tokens.size() / block_tokens);
}

void PromptReader::EnterSectionOf(uint32_t block) {
  PANDO_CHECK(block < blocks_ && block >= begin_) << "block " << block << " of " << blocks_;
  while (block >= end_) NextSection();
}

// A section begins where the last one ended, in the segment of its first block's last token; later
// segments that do not get a whole block of their own before that are entered on the way.
void PromptReader::NextSection() {
  begin_ = end_;
  entered_begin_ = entered_end_;
  const uint64_t first_end = (uint64_t{begin_} + 1) * block_tokens_;
  uint32_t last = entered_begin_;
  while (segment_end(last) < first_end) ++last;
  while (last + 1 < segments() && Repeats(last + 1)) ++last;
  entered_end_ = last + 1;
  end_ = static_cast<uint32_t>(std::min<uint64_t>(blocks_, segment_end(last) / block_tokens_));
}

std::string ValidatePrompt(const Prompt& prompt, uint32_t block_tokens) {
  uint64_t end = 0;
  for (size_t i = 0; i < prompt.segments.size(); ++i) {
    const uint64_t next = prompt.segments[i].end.value();
    if (next <= end) {
      return "segment " + std::to_string(i) + " ends at token " + std::to_string(next) +
             ": ends must ascend, the one before is " + std::to_string(end);
    }
    end = next;
  }
  if (!prompt.segments.empty() && end != prompt.tokens.size()) {
    return "the last segment ends at token " + std::to_string(end) +
           ": it must end with the prompt's " + std::to_string(prompt.tokens.size()) + " tokens";
  }
  const uint64_t blocks = (prompt.tokens.size() + block_tokens - 1) / block_tokens;
  for (size_t i = 0; i < prompt.extras.size(); ++i) {
    const uint64_t block = prompt.extras[i].block.value();
    if (block >= blocks) {
      return "extra " + std::to_string(i) + " is for block " + std::to_string(block) +
             ": the prompt has " + std::to_string(blocks) + " blocks";
    }
    if (i > 0 && block <= prompt.extras[i - 1].block.value()) {
      return "extra " + std::to_string(i) + " is for block " + std::to_string(block) +
             ": blocks must ascend, the one before is " +
             std::to_string(prompt.extras[i - 1].block.value());
    }
  }
  return "";
}

}  // namespace pando
