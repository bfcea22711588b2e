#include "tests/transfer/extent_memory.h"

#include <new>
#include <utility>

#include "radix/base/ids.h"

namespace pando {

void* ExtentMemory::do_allocate(size_t bytes, size_t alignment) {
  used_ = (used_ + alignment - 1) / alignment * alignment;
  if (mapped_.empty() || used_ + bytes > kExtentBytes.value()) {
    auto extent = HostExtent::Create(Bytes(0));
    if (!extent.ok() || bytes > kExtentBytes.value()) throw std::bad_alloc();
    auto mapped = MappedExtent::Map(extent->fd());
    if (!mapped.ok()) throw std::bad_alloc();
    extents_.push_back(*std::move(extent));
    mapped_.push_back(*std::move(mapped));
    used_ = 0;
    added_(mapped_.back().bytes(), extents_.back().fd());
  }
  void* const at = mapped_.back().bytes().data() + used_;
  used_ += bytes;
  return at;
}

}  // namespace pando
