// Memory of host extents that transfer engines know, to be had from the standard containers: pages
// that a process engine may move. Nothing is given back before the end.
#ifndef PANDO_TESTS_TRANSFER_EXTENT_MEMORY_H_
#define PANDO_TESTS_TRANSFER_EXTENT_MEMORY_H_

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <span>
#include <vector>

#include "transfer/memory/host_slab.h"

namespace pando {

class ExtentMemory final : public std::pmr::memory_resource {
 public:
  // `added` hears of each extent when it is made.
  using Added = std::function<void(std::span<std::byte> extent, int fd)>;
  explicit ExtentMemory(Added added) : added_(std::move(added)) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  const Added added_;
  std::vector<HostExtent> extents_;
  std::vector<MappedExtent> mapped_;
  size_t used_ = 0;  // of the last one
};

}  // namespace pando

#endif  // PANDO_TESTS_TRANSFER_EXTENT_MEMORY_H_
