#include "client/ctl/prompt_tokens.h"

#include "client/ctl/mix.h"

namespace pando::ctl {
namespace {

// Keeps the streams of ids and of rests apart, whatever the numbers.
enum class Stream : uint64_t { kShared = 1, kUnique = 2 };

void Append(Stream stream, uint64_t seed, uint64_t number, uint64_t count,
            std::vector<uint32_t>* tokens) {
  const uint64_t start =
      Mix64(Mix64(Mix64(seed + kGolden) + static_cast<uint64_t>(stream)) + number * kGolden);
  for (uint64_t i = 1; i <= count; ++i) {
    const uint64_t high = Mix64(start + i * kGolden) >> 32;
    tokens->push_back(static_cast<uint32_t>(high * kVocabulary >> 32));
  }
}

}  // namespace

void MakeTokens(const TraceRequest& request, uint64_t index, uint64_t seed,
                std::vector<uint32_t>* tokens) {
  tokens->clear();
  tokens->reserve(request.input_length);
  for (uint64_t i = 0; i < request.shared_ids(); ++i) {
    Append(Stream::kShared, seed, request.hash_ids[i], kTokensPerHashId, tokens);
  }
  Append(Stream::kUnique, seed, index, request.input_length - tokens->size(), tokens);
}

}  // namespace pando::ctl
