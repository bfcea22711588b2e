// The conversation trace (tests/data), read for tests and benchmarks of the tree.
//
//   for (const TraceRequest& request : ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz"))
//
// A small reader of just this file's form: one object a line, numbers only.
#ifndef PANDO_TESTS_MODEL_TRACE_H_
#define PANDO_TESTS_MODEL_TRACE_H_

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace pando::model {

inline constexpr uint32_t kTraceBlockTokens = 512;  // of a hash id

struct TraceRequest {
  uint64_t input_length = 0;
  std::vector<uint64_t> hash_ids;

  // Ids of blocks that are full: the last one may stand for a part.
  size_t full_ids() const { return input_length / kTraceBlockTokens; }
};

namespace trace_internal {

inline const char* After(const char* line, const char* key) {
  const char* at = std::strstr(line, key);
  return at == nullptr ? nullptr : at + std::strlen(key);
}

inline TraceRequest Parse(const char* line) {
  TraceRequest request;
  const char* length = After(line, "\"input_length\": ");
  const char* ids = After(line, "\"hash_ids\": [");
  if (length == nullptr || ids == nullptr) return request;
  request.input_length = std::strtoull(length, nullptr, 10);
  while (*ids != ']' && *ids != '\0') {
    char* end = nullptr;
    request.hash_ids.push_back(std::strtoull(ids, &end, 10));
    ids = *end == ',' ? end + 1 : end;
  }
  return request;
}

}  // namespace trace_internal

// All requests in file order, or none if the file cannot be read.
inline std::vector<TraceRequest> ReadTrace(const std::string& path) {
  std::vector<TraceRequest> requests;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return requests;
  std::string line;
  char part[4096];
  while (gzgets(file, part, sizeof(part)) != nullptr) {
    line += part;
    if (line.back() != '\n') continue;
    requests.push_back(trace_internal::Parse(line.c_str()));
    line.clear();
  }
  gzclose(file);
  return requests;
}

// Token `i` of the block that `id` stands for: any function that tells ids apart.
inline uint32_t TraceToken(uint64_t id, uint32_t i) {
  uint64_t x = (id + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;
  x ^= x >> 29;
  return static_cast<uint32_t>(x * 0x94d049bb133111ebull >> 33);
}

// Appends the tokens of the request's full blocks and, if `own_tail`, as many of its own, unlike
// anybody's, as its length asks for.
inline void AppendTokens(const TraceRequest& request, uint64_t number, bool own_tail,
                         std::vector<uint32_t>* tokens) {
  const size_t full = request.full_ids();
  for (size_t b = 0; b < full; ++b) {
    for (uint32_t i = 0; i < kTraceBlockTokens; ++i) {
      tokens->push_back(TraceToken(request.hash_ids[b], i));
    }
  }
  if (!own_tail) return;
  const auto rest = static_cast<uint32_t>(request.input_length % kTraceBlockTokens);
  for (uint32_t i = 0; i < rest; ++i) tokens->push_back(TraceToken((1ull << 40) + number, i));
}

}  // namespace pando::model

#endif  // PANDO_TESTS_MODEL_TRACE_H_
