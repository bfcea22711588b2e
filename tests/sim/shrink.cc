#include "tests/sim/shrink.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace pando::sim {
namespace {

// The list without its part [part * size / parts, (part + 1) * size / parts).
std::vector<Decision> Without(const std::vector<Decision>& all, size_t part, size_t parts) {
  std::vector<Decision> rest;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i * parts / all.size() != part) rest.push_back(all[i]);
  }
  return rest;
}

}  // namespace

bool SameViolation(std::string a, std::string b) {
  for (std::string* text : {&a, &b}) {
    std::erase_if(*text, [](unsigned char c) { return std::isdigit(c) != 0; });
  }
  return a == b;
}

std::vector<Decision> Shrink(std::vector<Decision> decisions, uint64_t asks_max,
                             const std::function<bool(const std::vector<Decision>&)>& stays) {
  size_t parts = 2, part = 0;  // the next to be left out
  while (decisions.size() > 1 && asks_max > 0) {
    std::vector<Decision> rest = Without(decisions, part, parts);
    --asks_max;
    if (stays(rest)) {
      decisions = std::move(rest);
      parts = std::max<size_t>(parts - 1, 2);
      if (part >= parts) part = 0;
    } else if (++part >= parts) {
      if (parts >= decisions.size()) break;
      parts = parts * 2;
      part = 0;
    }
    parts = std::min(parts, decisions.size());
  }
  return decisions;
}

}  // namespace pando::sim
