#include "node/runtime/environment.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

namespace pando::runtime {
namespace {

struct Variable {
  const char* name;
  const char* value;
};

constexpr Variable kWanted[] = {{"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}};

}  // namespace

void EnsureEnvironment(char** argv) {
  bool changed = false;
  for (const auto& [name, value] : kWanted) {
    if (std::getenv(name) == nullptr) changed |= ::setenv(name, value, 0) == 0;
  }
  if (!changed) return;
  // By its path, not as /proc/self/exe: the process is named for what it was executed as.
  char path[PATH_MAX + 1];
  const ssize_t size = ::readlink("/proc/self/exe", path, PATH_MAX);
  if (size <= 0) return;
  path[size] = '\0';
  ::execv(path, argv);
}

}  // namespace pando::runtime
