// PromptReader: a prompt as the tree sees it, in sections of whole blocks with one scope path.
//
//   segments   [ public      ][ corpus        ][ tenant ]
//   blocks     |  0  |  1  |  2  |  3  |  4  |  5  |  6  | (rest: no whole block)
//   sections   0..2           2..5              5..7
//
// A block across a border belongs to the later segment. Blocks are read in ascending order.
// Neighbours with equal scopes are one. Nothing is allocated. Borrows the prompt.
#ifndef PANDO_RADIX_TREE_PROMPT_READER_H_
#define PANDO_RADIX_TREE_PROMPT_READER_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "radix/key/prompt.h"

namespace pando {

class PromptReader {
 public:
  PromptReader(const Prompt& prompt, uint32_t block_tokens);

  // Whole blocks of the prompt.
  uint32_t blocks() const { return blocks_; }

  // Goes on to the section that contains `block`, which is below blocks().
  void EnterSectionOf(uint32_t block);
  uint32_t section_begin() const { return begin_; }
  uint32_t section_end() const { return end_; }
  // Scopes entered at the section's begin are numbered [entered_begin, entered_end); those before
  // were entered by earlier sections.
  uint32_t entered_begin() const { return entered_begin_; }
  uint32_t entered_end() const { return entered_end_; }
  std::string_view scope(uint32_t i) const {
    return prompt_.segments.empty() ? std::string_view() : prompt_.segments[i].scope;
  }
  // True if scope i is the same as the one before it: nothing is entered.
  bool Repeats(uint32_t i) const { return i > 0 && scope(i) == scope(i - 1); }

  const uint32_t* tokens(uint32_t block) const {
    return prompt_.tokens.data() + uint64_t{block} * block_tokens_;
  }
  std::span<const uint32_t> block(uint32_t block) const { return {tokens(block), block_tokens_}; }

  // The block's extra bytes; empty: none. Ascending calls.
  std::string_view Extra(uint32_t block) {
    while (extra_ < prompt_.extras.size() && prompt_.extras[extra_].block.value() < block) ++extra_;
    const bool here =
        extra_ < prompt_.extras.size() && prompt_.extras[extra_].block.value() == block;
    return here ? prompt_.extras[extra_].bytes : std::string_view();
  }
  // True if no block from `block` on has extra bytes.
  bool NoExtraFrom(uint32_t block) {
    Extra(block);
    return extra_ == prompt_.extras.size();
  }

 private:
  uint32_t segments() const {
    return prompt_.segments.empty() ? 1 : static_cast<uint32_t>(prompt_.segments.size());
  }
  uint64_t segment_end(uint32_t i) const {
    return prompt_.segments.empty() ? prompt_.tokens.size() : prompt_.segments[i].end.value();
  }
  void NextSection();

  const Prompt prompt_;
  const uint32_t block_tokens_;
  uint32_t blocks_ = 0;
  uint32_t begin_ = 0, end_ = 0;
  uint32_t entered_begin_ = 0, entered_end_ = 0;
  size_t extra_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_TREE_PROMPT_READER_H_
