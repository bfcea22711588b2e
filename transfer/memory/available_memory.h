// The parts of AvailableMemory (host_slab.h) that a test can feed with files of its own.
// Stateless; any thread.
#ifndef PANDO_TRANSFER_MEMORY_AVAILABLE_MEMORY_H_
#define PANDO_TRANSFER_MEMORY_AVAILABLE_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "radix/base/ids.h"

namespace pando::internal {

// Where the kernel tells it.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

absl::StatusOr<Bytes> AvailableMemoryFrom(const MemoryFiles& files);

}  // namespace pando::internal

#endif  // PANDO_TRANSFER_MEMORY_AVAILABLE_MEMORY_H_
