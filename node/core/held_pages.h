// HeldPages: the bytes of a set of pages that several hold at once, each page counted once.
// Owner thread only.
#ifndef PANDO_NODE_CORE_HELD_PAGES_H_
#define PANDO_NODE_CORE_HELD_PAGES_H_

#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "radix/prefix_cache.h"

namespace pando {

class HeldPages {
 public:
  // `stride`: what each of the pages takes.
  void Add(std::span<const PageView> pages, Bytes stride) {
    for (const PageView& view : pages) {
      if (holds_[view.page.page]++ == 0) bytes_ += stride.value();
    }
  }
  // They must have been added.
  void Remove(std::span<const PageView> pages, Bytes stride) {
    for (const PageView& view : pages) {
      auto it = holds_.find(view.page.page);
      if (--it->second > 0) continue;
      holds_.erase(it);
      bytes_ -= stride.value();
    }
  }

  uint64_t bytes() const { return bytes_; }

 private:
  absl::flat_hash_map<PageId, uint32_t> holds_;
  uint64_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_HELD_PAGES_H_
