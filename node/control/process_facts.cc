#include "node/control/process_facts.h"

#include <filesystem>
#include <iterator>
#include <system_error>

namespace pando::control {
namespace {

uint64_t CountEntries(const char* directory) {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

ProcessFacts ReadProcessFacts() {
  const uint64_t fds = CountEntries("/proc/self/fd");
  return {fds > 0 ? fds - 1 : 0, CountEntries("/proc/self/task")};
}

}  // namespace pando::control
