// The memory of one life of a node, with a stamp for the bytes of each page: whoever reads a page
// can tell whose KV it is, so that a wrong page proves itself. It also knows who may be touching
// which page, and that a page is only written while nobody else may. Engines that have it mapped
// keep it when the node dies. One thread.
#ifndef PANDO_TESTS_SIM_PAGE_MEMORY_H_
#define PANDO_TESTS_SIM_PAGE_MEMORY_H_

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "radix/base/ids.h"
#include "tests/sim/checker.h"

namespace pando::sim {

// Whose KV the bytes are.
struct Stamp {
  uint64_t space = 0;   // number of the geometry
  uint64_t prefix = 0;  // hash of all tokens and scopes up to the block's end
  uint64_t shard = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
static_assert(std::has_unique_object_representations_v<Stamp>, "its bytes are what peers pull");
uint64_t Checksum(const Stamp& stamp);

class PageMemory {
 public:
  using Accessor = uint64_t;  // one copy, from an accepted Begin until it stops touching pages

  explicit PageMemory(Checker* checker) : checker_(checker) {}

  Accessor Enter(std::span<const PageId> pages);
  // A transfer from a peer, which may write the page at any time: nobody else may touch it.
  Accessor EnterAlone(PageId page);
  void Leave(Accessor accessor);
  void Write(Accessor accessor, PageId page, const Stamp& stamp);
  Stamp Read(Accessor accessor, PageId page);
  // The page's bytes, for transfers.
  std::span<std::byte> BytesOf(PageId page) {
    return std::as_writable_bytes(std::span(&pages_[page].stamp, 1));
  }
  uint64_t accessors() const { return pages_of_.size(); }

 private:
  struct Page {
    Stamp stamp;
    std::vector<Accessor> accessors;
    bool alone = false;  // entered alone
  };
  static bool Has(const Page& page, Accessor accessor);

  Checker* checker_;
  absl::node_hash_map<PageId, Page> pages_;
  absl::flat_hash_map<Accessor, std::vector<PageId>> pages_of_;
  Accessor last_ = 0;
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_PAGE_MEMORY_H_
