// Where pages lie in this process: the slab's extents, mapped. Owner thread only.
#ifndef PANDO_NODE_RUNTIME_PAGE_MEMORY_H_
#define PANDO_NODE_RUNTIME_PAGE_MEMORY_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "radix/base/ids.h"
#include "transfer/memory/host_slab.h"

namespace pando::runtime {

class PageMemory {
 public:
  // Maps the next extent, by ExtentId from 0; its memory, until the end of this.
  absl::StatusOr<std::span<std::byte>> Add(const HostExtent& extent);

  // The memory of a page of an extent that was added.
  std::span<std::byte> Of(PageId page, Bytes page_bytes) const;

 private:
  std::vector<MappedExtent> extents_;  // by ExtentId
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_PAGE_MEMORY_H_
