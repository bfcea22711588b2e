// HeldPages: the bytes of a set of pages that several hold at once, each page counted once.
//
// A number a page, in one array an extent: a claim of 400,000 pages is added in a millisecond,
// which no set that hashes does. Arrays are made when they are needed and go when nothing is held.
// Owner thread only.
#ifndef PANDO_NODE_CORE_HELD_PAGES_H_
#define PANDO_NODE_CORE_HELD_PAGES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "radix/base/check.h"
#include "radix/prefix_cache.h"

namespace pando {

class HeldPages {
 public:
  // `stride`: what each of the pages takes.
  void Add(std::span<const PageView> pages, Bytes stride) {
    for (const PageView& view : pages) {
      if (NumberOf(view.page.page)++ == 0) bytes_ += stride.value();
    }
  }
  // They must have been added.
  void Remove(std::span<const PageView> pages, Bytes stride) {
    for (const PageView& view : pages) {
      uint32_t& number = NumberOf(view.page.page);
      PANDO_CHECK(number > 0) << "page " << view.page.page << " was not added";
      if (--number == 0) bytes_ -= stride.value();
    }
    if (bytes_ == 0) holds_ = {};
  }

  uint64_t bytes() const { return bytes_; }

 private:
  uint32_t& NumberOf(PageId page) {
    const size_t extent = ExtentOf(page).value(), index = IndexInExtent(page);
    if (extent >= holds_.size()) holds_.resize(extent + 1);
    std::vector<uint32_t>& numbers = holds_[extent];
    if (index >= numbers.size()) numbers.resize(index + 1);
    return numbers[index];
  }

  std::vector<std::vector<uint32_t>> holds_;  // by extent, by index in it
  uint64_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_HELD_PAGES_H_
