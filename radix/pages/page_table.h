// PageTable: the state of every page of every extent, and which space owns which extent.
//
//   free ──Reserve──► reserved ──Hold──► receiving ──Commit──► held ──Release──► committed
//
// The table of states x operations (kNextState in page_table.cc is the same table):
//
// clang-format off
// |             | Reserve  | Hold      | Commit    | Release, not last | Release, last | Detach      |
// |-------------|----------|-----------|-----------|-------------------|---------------|-------------|
// | free        | reserved | broken    | refused   | broken            | broken        | broken      |
// | reserved    | broken   | receiving | committed | broken            | broken        | free        |
// | receiving   | broken   | receiving | held      | receiving         | reserved      | quarantined |
// | committed   | broken   | held      | refused   | broken            | broken        | free        |
// | held        | broken   | held      | refused   | held              | committed     | quarantined |
// | quarantined | broken   | broken    | refused   | quarantined       | free          | broken      |
// clang-format on
//
// Reserve gives a free page to a block; Hold says that somebody may be touching its memory (of a
// reserved page: is writing it, which makes it receiving); Commit publishes its bytes; Release ends
// a hold; Detach takes it from its block. "broken" stops the process: no input leads there, only a
// fault of ours. "refused" is a value.
//
// Invariants:
//  1. Every page of an owned extent is in exactly one state; the counts of a space sum to its
//     pages.
//  2. {page, generation} is never used twice: a page that becomes free gets a new generation, also
//     when its extent moves to another space. A page whose generations are used up stays
//     quarantined.
//  3. Pages of a space have one stride; an extent changes its space only while no page is in use.
//  4. A space owns at most its share of all extents, or one.
//
// Every operation is O(1), but ReleaseEmpty. Threads: owner thread only.
#ifndef PANDO_RADIX_PAGES_PAGE_TABLE_H_
#define PANDO_RADIX_PAGES_PAGE_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "radix/base/ids.h"
#include "radix/base/page_ops.h"
#include "radix/pool/chunked_array.h"

namespace pando {

enum class PageState : uint8_t { kFree, kReserved, kReceiving, kCommitted, kHeld, kQuarantined };
inline constexpr size_t kPageStates = 6;

enum class PageOp : uint8_t { kReserve, kHold, kCommit, kRelease, kReleaseLast, kDetach };
inline constexpr size_t kPageOps = 6;
static_assert(sizeof(PageOpCounts) == kPageStates * kPageOps * sizeof(uint64_t));

// What an operation on a page in some state comes to.
enum class PageNext : uint8_t {
  kFree,
  kReserved,
  kReceiving,
  kCommitted,
  kHeld,
  kQuarantined,
  kRefused,
  kBroken,
};
PageNext NextPageState(PageState state, PageOp op);

struct PageEntry {
  uint64_t checksum = 0;  // of what was committed
  uint32_t generation = 0;
  uint32_t next_free = 0;  // index in the extent
  uint32_t holds = 0;
  PageState state = PageState::kFree;
  bool loose = false;  // held, and the block it belongs to is pinned by nobody
};

class PageTable {
 public:
  struct Options {
    double space_share = 0.8;
    uint32_t extent_pages_max = 0;  // carve at most so many pages from an extent; 0: all
    PageOpCounts* ops = nullptr;    // counts, if there
  };

  explicit PageTable(const Options& options) : options_(options) {}

  // Makes `space` exist, which is numbered next or has been made before without being used. False:
  // no memory.
  bool EnsureSpace(SpaceId space, Bytes page_bytes);

  // ---- Extents
  // An unowned extent more. False: no memory, or it is there already.
  bool AddExtent(ExtentId extent);
  uint64_t extents() const { return extents_total_; }
  uint64_t extents_unowned() const { return unowned_; }
  uint64_t extents_owned(SpaceId space) const { return spaces_[space.value()].extents; }
  uint32_t pages_per_extent(SpaceId space) const { return spaces_[space.value()].extent_pages; }
  // How many extents the space may take now.
  uint64_t Takeable(SpaceId space) const;
  // Takes one; false: no memory. There must be one that it may take.
  bool Take(SpaceId space);
  // Undoes the last `count` calls of Take, after which no page was reserved.
  void Untake(SpaceId space, uint64_t count);
  // Gives all extents without a page in use back; returns how many.
  uint64_t ReleaseEmpty(SpaceId space);

  // ---- Pages
  uint64_t free_pages(SpaceId space) const { return Count(space, PageState::kFree); }
  uint64_t Count(SpaceId space, PageState state) const {
    return spaces_[space.value()].counts[static_cast<size_t>(state)];
  }
  const PageEntry& entry(PageId page) const { return EntryOf(page); }
  PageRef ref(PageId page) const { return {page, Generation(EntryOf(page).generation)}; }
  // Starts to load the page's entry.
  void Prefetch(PageId page) const { __builtin_prefetch(&EntryOf(page)); }

  PageId Reserve(SpaceId space);  // there must be a free page
  void Hold(PageId page);
  void Release(PageRef page);
  // False: the table refuses.
  bool Commit(PageId page, uint64_t checksum);
  // The same if `page` still is `expected`.
  bool Commit(PageId page, PageRef expected, uint64_t checksum) {
    return page == expected.page && EntryOf(page).generation == expected.generation.value() &&
           Commit(page, checksum);
  }
  // True if the page is free now, false if it is quarantined until its last Release.
  bool Detach(PageId page);

  // Held pages of blocks that nobody pins would not be free if their block went; whoever counts
  // what eviction can bring marks them. A page stops being loose by itself when it stops being
  // held.
  void SetLoose(PageId page, bool loose);
  uint64_t loose(SpaceId space) const { return spaces_[space.value()].loose; }

  Bytes memory() const;
  // Recounts. Empty, or the first broken invariant.
  std::string Check() const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Extent {
    std::unique_ptr<PageEntry[]> entries;  // null while unowned
    uint32_t space = kNone;
    uint32_t pages = 0;    // carved
    uint32_t touched = 0;  // entries from here on were never used since the extent was taken
    uint32_t free_head = kNone;
    uint32_t in_use = 0;
    uint32_t generation = 1;  // larger than any generation that ended here, at least this
    uint32_t previous = kNone, next = kNone;  // of the space's extents with free pages, or unowned
    bool known = false;
  };
  struct Space {
    uint32_t extent_pages = 0;
    uint64_t extents = 0;
    uint32_t available = kNone;  // extents with free pages
    std::array<uint64_t, kPageStates> counts{};
    uint64_t loose = 0;
  };

  PageEntry& EntryOf(PageId page) const {
    return extents_[ExtentOf(page).value()].entries[IndexInExtent(page)];
  }
  Extent& ExtentOfPage(PageId page) { return extents_[ExtentOf(page).value()]; }
  PageNext Apply(PageId page, Extent* extent, PageEntry* entry, PageOp op);
  void Free(PageId page, Extent* extent, PageEntry* entry);
  void LinkAvailable(uint32_t extent);
  void UnlinkAvailable(uint32_t extent);
  void GiveBack(uint32_t extent);
  std::string CheckExtent(uint32_t id, std::array<uint64_t, kPageStates>* counts,
                          uint64_t* loose) const;

  const Options options_;
  ChunkedArray<Extent, 8> extents_;
  uint32_t extents_end_ = 0;  // ids are below this
  uint64_t extents_total_ = 0;
  uint64_t unowned_ = 0;
  uint32_t unowned_head_ = kNone;
  std::vector<Space> spaces_;
};

}  // namespace pando

#endif  // PANDO_RADIX_PAGES_PAGE_TABLE_H_
