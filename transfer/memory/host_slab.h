// Host slab: page memory that the node owns and engines map.
//
//   slab = extents of 64 MiB, each its own memfd: created, populated and sealed by the node, mapped
//   by engines
//
// The memory is charged to the node, which populated it. It has no name in any file system: it
// lives as long as the node's fd or an engine's mapping does, and nobody can resize it. Errors:
// absl::Status. Immutable after creation; any thread.
#ifndef PANDO_TRANSFER_MEMORY_HOST_SLAB_H_
#define PANDO_TRANSFER_MEMORY_HOST_SLAB_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "radix/base/ids.h"
#include "transfer/memory/unique_fd.h"

namespace pando {

// Memory that can still be taken without swapping or an OOM kill: the smaller of the machine's
// MemAvailable and what the process's cgroups (v2, all ancestors) leave.
absl::StatusOr<Bytes> AvailableMemory();

// The node's side of one extent: a sealed, fully populated, zeroed memfd.
class HostExtent {
 public:
  // Blocks for milliseconds (it zeroes kExtentBytes): not for the owner thread. RESOURCE_EXHAUSTED
  // if that would leave the machine with less than `reserve` available.
  static absl::StatusOr<HostExtent> Create(Bytes reserve);

  // Owned by the extent; pass it on with SCM_RIGHTS.
  int fd() const { return fd_.get(); }

 private:
  explicit HostExtent(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// An engine's side: the extent mapped read-write, not inherited by fork (MADV_DONTFORK). Unmapped
// when destroyed.
class MappedExtent {
 public:
  // Maps `fd`, which stays the caller's and may be closed at once. FAILED_PRECONDITION unless it is
  // a memfd of exactly kExtentBytes that is sealed against resizing (a mapping that can shrink is a
  // SIGBUS).
  static absl::StatusOr<MappedExtent> Map(int fd);
  MappedExtent(MappedExtent&& other) noexcept;
  MappedExtent& operator=(MappedExtent&& other) noexcept;
  ~MappedExtent();

  std::span<std::byte> bytes() const { return bytes_; }
  // Gives up the mapping without unmapping it: in a fork's child it is not there (MADV_DONTFORK),
  // and something else may have taken its place.
  std::span<std::byte> Release();

 private:
  explicit MappedExtent(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

// Enters all pages of a mapping into this process's page table now, instead of by a fault at the
// first touch of each. Contents stay as they are, also while others use them. Any thread; takes
// milliseconds an extent. What the kernel does not do is left to the first touch.
void Prefault(std::span<std::byte> mapping);

}  // namespace pando

#endif  // PANDO_TRANSFER_MEMORY_HOST_SLAB_H_
