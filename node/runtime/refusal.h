// How an option is refused: found, allowed and what to do, in one line. Stateless; any thread.
#ifndef PANDO_NODE_RUNTIME_REFUSAL_H_
#define PANDO_NODE_RUNTIME_REFUSAL_H_

#include <string>

#include "node/core/problem.h"

namespace pando::runtime {

inline std::string Refusal(const std::string& key, const std::string& found,
                           const std::string& allowed) {
  constexpr size_t kQuotedMax = 128;
  return key + ": found \"" + Quotable(found, kQuotedMax) + "\"; allowed: " + allowed;
}

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_REFUSAL_H_
