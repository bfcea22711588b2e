// Why a request was refused: a code and one sentence that says what was found, what is allowed and
// what to do. Immutable values; any thread.
#ifndef PANDO_NODE_CORE_PROBLEM_H_
#define PANDO_NODE_CORE_PROBLEM_H_

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "node/core/messages.h"

namespace pando {

struct Problem {
  Code code = Code::kInvalid;
  std::string message;
};

// Joins what prints: for messages and log lines, never on the way of a request that is served.
template <class... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// A caller's own bytes as a message may quote them: whole UTF-8 characters up to `limit` bytes, '?'
// for what is none or is a control character, "..." for what was cut.
std::string Quotable(std::string_view bytes, size_t limit = 64);

inline Problem Invalid(std::string message) {
  return {Code::kInvalid, std::move(message)};
}
inline Problem Unavailable(std::string message) {
  return {Code::kUnavailable, std::move(message)};
}
inline Problem Unknown(std::string message) {
  return {Code::kUnknown, std::move(message)};
}

// "1200 tokens found, at most 1000 allowed in one prompt: split it" for
// OverLimit("tokens", 1200, 1000, "in one prompt", "split it").
Problem OverLimit(std::string_view what, uint64_t found, uint64_t allowed, std::string_view where,
                  std::string_view advice);

Answer Refusal(Problem problem);

}  // namespace pando

#endif  // PANDO_NODE_CORE_PROBLEM_H_
