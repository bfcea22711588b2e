// An engine of role both, with blocks of kBlockTokens. What goes wrong ends the process with a
// message.
#ifndef PANDO_TESTS_BENCH_BENCH_CLIENT_H_
#define PANDO_TESTS_BENCH_BENCH_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace pando::bench {

inline constexpr uint32_t kBlockTokens = 16;
inline constexpr int64_t kCallNanos = 10'000'000'000;

// `prefill_tokens_per_s` 0: not told.
std::unique_ptr<client::Client> Attach(const std::string& socket, const std::string& replica_key,
                                       uint64_t page_bytes, uint64_t prefill_tokens_per_s = 0);
// Stores all full blocks of the prompt; none of them is there before.
void StorePrompt(client::Client* client, const std::vector<uint32_t>& tokens, uint64_t page_bytes);

[[noreturn]] void Fail(const std::string& what);

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_BENCH_CLIENT_H_
