// A prompt as the cache sees it: tokens, the scopes they are in, and what else shaped their KV.
//
//   tokens    [ system prompt ][ document      ][ question  ]
//   segments    public           corpus/manual    tenant/a        wider to narrower
//
// Borrowed views; any thread.
#ifndef PANDO_RADIX_KEY_PROMPT_H_
#define PANDO_RADIX_KEY_PROMPT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "radix/base/ids.h"

namespace pando {

// Tokens of a prompt up to (not including) `end` that no earlier segment covers, all in `scope`.
// A block across a border belongs to the narrowest scope of its tokens, which is the later
// segment's.
struct Segment {
  std::string_view scope;  // empty: public
  TokenCount end;
};

// What else shapes the KV of a block: image digests, prompt embeddings. Compared as bytes.
struct BlockExtra {
  BlockCount block;  // index in the prompt
  std::string_view bytes;
};

// A borrowed view of a prompt. `segments` ends strictly ascend and the last is tokens.size(); no
// segments at all means one public one. `extras` strictly ascend. Whoever makes one from outside
// input checks that first (ValidatePrompt).
struct Prompt {
  std::span<const uint32_t> tokens;
  std::span<const Segment> segments;
  std::span<const BlockExtra> extras;
};

// Empty if `prompt` is well formed, else what was found, what is allowed.
std::string ValidatePrompt(const Prompt& prompt, uint32_t block_tokens);

// Where a look-up ended.
enum class Stop : uint8_t {
  kEnd,       // nothing more to match below the limit
  kAbsent,    // the next block is not in the tree
  kInFlight,  // the next block is there, but its pages are still being written
};

}  // namespace pando

#endif  // PANDO_RADIX_KEY_PROMPT_H_
