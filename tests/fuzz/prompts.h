// The prompts of fuzzed scripts, and what the pages of their blocks must hold. Immutable values.
#ifndef PANDO_TESTS_FUZZ_PROMPTS_H_
#define PANDO_TESTS_FUZZ_PROMPTS_H_

#include <cstdint>
#include <vector>

#include "node/core/messages.h"
#include "node/core/spaces.h"
#include "tests/fuzz/script.h"
#include "tests/sim/page_memory.h"

namespace pando::fuzz {

// `tokens` tokens. Bits of `prompt`: 0-1 the family, whose prompts begin alike; 2-4 after how many
// pairs of tokens this one goes its own way (0: never); 5-7 which way. Bits of `form`: 0-1 segments
// (0 none, 1 two, 2 three, 3 malformed); 2-3 extras (0 none, 1 one, 2 two, 3 too long); 4-7 the
// block of the last extra.
PromptData PromptOf(const Operation& operation);

// So many tokens that no prompt begins with, to be appended.
std::vector<uint32_t> MoreTokens(const Operation& operation);

// What shard `shard`'s page of each full block holds, by all that shaped it: equal only if tokens,
// extras and the scopes of all blocks above are.
std::vector<sim::Stamp> StampsOf(const std::string& identity, uint32_t block_tokens, uint32_t shard,
                                 const PromptData& prompt);

// Of a message or claim: 0 is none, from 240 on it has passed, else a power of two from now on.
Nanos DeadlineOf(uint8_t time, Nanos now);
// 1 ns to two hours.
Nanos NanosOf(uint8_t time);

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_PROMPTS_H_
