// The tokens of a trace's request. A trace tells only which parts of prompts are equal, so tokens
// are made up:
//
//   hash_ids   [ 0          ][ 14         ]            tokens of a full id follow from (seed, id)
//   tokens     512 tokens     512 tokens    rest       the rest follows from (seed, request index)
//
// Same seed, same tokens, on every machine. Stateless; any thread.
#ifndef PANDO_CLIENT_CTL_PROMPT_TOKENS_H_
#define PANDO_CLIENT_CTL_PROMPT_TOKENS_H_

#include <cstdint>
#include <vector>

#include "client/ctl/trace.h"

namespace pando::ctl {

// Token ids lie below this, as those of a model with a vocabulary of that size do.
inline constexpr uint32_t kVocabulary = 128'000;

// Replaces `tokens` by the prompt of `request`, which is number `index` of the trace.
void MakeTokens(const TraceRequest& request, uint64_t index, uint64_t seed,
                std::vector<uint32_t>* tokens);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_PROMPT_TOKENS_H_
