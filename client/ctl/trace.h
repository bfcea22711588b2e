// Request traces in the published JSON-lines form, plain or gzip:
//
//   {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, ..., 13]}
//
// One request a line. Each hash id stands for 512 tokens of the prompt *and all before them*: equal
// ids, equal prefix. The last id may stand for fewer tokens; such a part is never shared.
//
// Errors name file and line, what was found and what was expected. Stateless; any thread.
#ifndef PANDO_CLIENT_CTL_TRACE_H_
#define PANDO_CLIENT_CTL_TRACE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pando::ctl {

inline constexpr uint64_t kTokensPerHashId = 512;

struct TraceRequest {
  double timestamp_ms = 0;     // since the start of the trace
  uint64_t input_length = 0;   // tokens of the prompt
  uint64_t output_length = 0;  // tokens decoded
  std::vector<uint64_t> hash_ids;

  // How many leading ids name content that other requests may share: the full ones.
  uint64_t shared_ids() const { return input_length / kTokensPerHashId; }
};

// Reads the first `limit` requests of `path`. NOT_FOUND if it cannot be opened, INVALID_ARGUMENT
// for a line that is not of the form above, DATA_LOSS for a broken gzip stream.
absl::StatusOr<std::vector<TraceRequest>> ReadTrace(
    const std::string& path, uint64_t limit = std::numeric_limits<uint64_t>::max());

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_TRACE_H_
