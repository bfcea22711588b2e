#include "client/fork_guard.h"

#include <sys/mman.h>

#include <new>

namespace pando::client {
namespace {

constexpr size_t kWordBytes = 4096;  // one page; the kernel rounds up where pages are larger

}  // namespace

std::shared_ptr<const ForkGuard> ForkGuard::Create() {
  void* page =
      mmap(nullptr, kWordBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, kWordBytes, MADV_WIPEONFORK) != 0) {
    munmap(page, kWordBytes);
    return nullptr;
  }
  return std::shared_ptr<const ForkGuard>(new ForkGuard(new (page) std::atomic<int>(1)));
}

ForkGuard::~ForkGuard() {
  munmap(word_, kWordBytes);
}

}  // namespace pando::client
