// The line that a node prints when it is ready: "pando-node ready name=... socket=... ...".
#ifndef PANDO_TESTS_NODE_RUNTIME_READY_LINE_H_
#define PANDO_TESTS_NODE_RUNTIME_READY_LINE_H_

#include <sstream>
#include <string>

namespace pando::runtime {

// Its field `key`; empty: it has none.
inline std::string ReadyField(const std::string& line, const std::string& key) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  }
  return "";
}

}  // namespace pando::runtime

#endif  // PANDO_TESTS_NODE_RUNTIME_READY_LINE_H_
