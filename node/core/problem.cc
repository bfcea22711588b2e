#include "node/core/problem.h"

namespace pando {

Problem OverLimit(std::string_view what, uint64_t found, uint64_t allowed, std::string_view where,
                  std::string_view advice) {
  return {Code::kLimit,
          Text(found, " ", what, " found, at most ", allowed, " allowed ", where, ": ", advice)};
}

Answer Refusal(Problem problem) {
  return {problem.code, std::move(problem.message), std::monostate{}};
}

}  // namespace pando
