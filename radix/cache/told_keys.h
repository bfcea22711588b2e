// The names under which the listener was told of blocks, by the page of their first shard: what
// goes away is told under the name that it came with, without a look at its tokens.
//
// 8 bytes a page, in arrays of one extent that are made when first written. 0: not told.
// Threads: owner thread only.
#ifndef PANDO_RADIX_CACHE_TOLD_KEYS_H_
#define PANDO_RADIX_CACHE_TOLD_KEYS_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "radix/base/ids.h"
#include "radix/pool/chunked_array.h"

namespace pando {

class ToldKeys {
 public:
  uint64_t Get(PageId page) const {
    const uint32_t extent = ExtentOf(page).value();
    if (extent >= extents_.size() || extents_[extent] == nullptr) return 0;
    return extents_[extent][IndexInExtent(page)];
  }
  // False: no memory.
  bool Set(PageId page, uint64_t key) {
    const uint32_t extent = ExtentOf(page).value();
    if (!extents_.EnsureSize(uint64_t{extent} + 1)) return false;
    Keys& keys = extents_[extent];
    if (keys == nullptr) {
      keys.reset(static_cast<uint64_t*>(std::calloc(kPages, sizeof(uint64_t))));
      if (keys == nullptr) return false;
      bytes_ += kPages * sizeof(uint64_t);
    }
    keys[IndexInExtent(page)] = key;
    return true;
  }
  uint64_t Take(PageId page) {
    const uint64_t key = Get(page);
    if (key != 0) extents_[ExtentOf(page).value()][IndexInExtent(page)] = 0;
    return key;
  }

  uint64_t bytes() const { return extents_.bytes() + bytes_; }

 private:
  static constexpr uint64_t kPages = uint64_t{1} << kPageIndexBits;
  struct Free {
    void operator()(uint64_t* keys) const { std::free(keys); }
  };
  using Keys = std::unique_ptr<uint64_t[], Free>;

  ChunkedArray<Keys, 8> extents_;
  uint64_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_CACHE_TOLD_KEYS_H_
