#include "node/control/process_facts.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

namespace pando::control {
namespace {

std::optional<uint64_t> CountFds() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) {
    // A new descriptor gets the lowest free number below the limit: there is none.
    rlimit limit{};
    if (errno != EMFILE || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    return limit.rlim_cur;
  }
  uint64_t count = 0;
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(directory);
  return count - 1;  // without the one that counting took
}

// The kernel counts threads as links of their directory, besides its own two; to ask takes no
// descriptor.
uint64_t CountThreads() {
  struct stat tasks {};
  return ::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? tasks.st_nlink - 2 : 0;
}

}  // namespace

ProcessFacts ReadProcessFacts() {
  return {CountFds(), CountThreads()};
}

}  // namespace pando::control
