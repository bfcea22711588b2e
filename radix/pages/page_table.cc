#include "radix/pages/page_table.h"

#include <algorithm>
#include <limits>
#include <new>

#include "radix/base/check.h"

namespace pando {
namespace {

constexpr PageNext kFree = PageNext::kFree, kReserved = PageNext::kReserved,
                   kReceiving = PageNext::kReceiving, kCommitted = PageNext::kCommitted,
                   kHeld = PageNext::kHeld, kQuarantined = PageNext::kQuarantined,
                   kRefused = PageNext::kRefused, kBroken = PageNext::kBroken;

constexpr std::array<std::array<PageNext, kPageOps>, kPageStates> kNextState = {{
    // Reserve, Hold,      Commit,     Release,      last one,   Detach
    {kReserved, kBroken, kRefused, kBroken, kBroken, kBroken},          // free
    {kBroken, kReceiving, kCommitted, kBroken, kBroken, kFree},         // reserved
    {kBroken, kReceiving, kHeld, kReceiving, kReserved, kQuarantined},  // receiving
    {kBroken, kHeld, kRefused, kBroken, kBroken, kFree},                // committed
    {kBroken, kHeld, kRefused, kHeld, kCommitted, kQuarantined},        // held
    {kBroken, kBroken, kRefused, kQuarantined, kFree, kBroken},         // quarantined
}};

// Apart from its caller, which is inlined five times.
[[gnu::noinline, gnu::cold]] void Broken(PageId page, PageState state, PageOp op) {
  PANDO_CHECK(false) << "page " << page << " in state " << static_cast<int>(state) << ", operation "
                     << static_cast<int>(op);
}

constexpr uint32_t kGenerationMax = std::numeric_limits<uint32_t>::max();

}  // namespace

PageNext NextPageState(PageState state, PageOp op) {
  return kNextState[static_cast<size_t>(state)][static_cast<size_t>(op)];
}

bool PageTable::EnsureSpace(SpaceId id, Bytes page_bytes) {
  Space space;
  space.extent_pages = static_cast<uint32_t>(kExtentBytes.value() / PageStride(page_bytes).value());
  if (options_.extent_pages_max > 0) {
    space.extent_pages = std::min(space.extent_pages, options_.extent_pages_max);
  }
  if (id.value() < spaces_.size()) {
    spaces_[id.value()] = space;
    return true;
  }
  try {
    spaces_.push_back(space);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// ---- Extents

bool PageTable::AddExtent(ExtentId id) {
  if (id.value() >= kNoPage.page.value() >> kPageIndexBits) return false;
  if (!extents_.EnsureSize(uint64_t{id.value()} + 1)) return false;
  Extent& extent = extents_[id.value()];
  if (extent.known) return false;
  extent.known = true;
  extent.next = unowned_head_;
  unowned_head_ = id.value();
  extents_end_ = std::max(extents_end_, id.value() + 1);
  ++extents_total_;
  ++unowned_;
  return true;
}

uint64_t PageTable::Takeable(SpaceId id) const {
  const Space& space = spaces_[id.value()];
  const auto share =
      static_cast<uint64_t>(static_cast<double>(extents_total_) * options_.space_share);
  const uint64_t limit = std::max<uint64_t>(share, 1);
  return space.extents >= limit ? 0 : std::min(limit - space.extents, unowned_);
}

bool PageTable::Take(SpaceId id) {
  PANDO_CHECK(Takeable(id) > 0) << "space " << id << " may not take an extent";
  Space& space = spaces_[id.value()];
  std::unique_ptr<PageEntry[]> entries(new (std::nothrow) PageEntry[space.extent_pages]);
  if (entries == nullptr) return false;
  const uint32_t taken = unowned_head_;
  Extent& extent = extents_[taken];
  unowned_head_ = extent.next;
  --unowned_;
  extent.entries = std::move(entries);
  extent.space = id.value();
  extent.pages = space.extent_pages;
  extent.touched = 0;
  extent.free_head = kNone;
  extent.in_use = 0;
  ++space.extents;
  space.counts[static_cast<size_t>(PageState::kFree)] += extent.pages;
  LinkAvailable(taken);
  return true;
}

void PageTable::Untake(SpaceId id, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) GiveBack(spaces_[id.value()].available);
}

uint64_t PageTable::ReleaseEmpty(SpaceId id) {
  uint64_t released = 0;
  for (uint32_t i = 0; i < extents_end_; ++i) {
    const Extent& extent = extents_[i];
    if (extent.known && extent.space == id.value() && extent.in_use == 0) {
      GiveBack(i);
      ++released;
    }
  }
  return released;
}

void PageTable::GiveBack(uint32_t id) {
  Extent& extent = extents_[id];
  Space& space = spaces_[extent.space];
  UnlinkAvailable(id);
  space.counts[static_cast<size_t>(PageState::kFree)] -= extent.pages;
  --space.extents;
  extent.entries.reset();
  extent.space = kNone;
  extent.pages = 0;
  extent.next = unowned_head_;
  unowned_head_ = id;
  ++unowned_;
}

void PageTable::LinkAvailable(uint32_t id) {
  Extent& extent = extents_[id];
  Space& space = spaces_[extent.space];
  extent.previous = kNone;
  extent.next = space.available;
  if (space.available != kNone) extents_[space.available].previous = id;
  space.available = id;
}

void PageTable::UnlinkAvailable(uint32_t id) {
  Extent& extent = extents_[id];
  Space& space = spaces_[extent.space];
  (extent.previous == kNone ? space.available : extents_[extent.previous].next) = extent.next;
  if (extent.next != kNone) extents_[extent.next].previous = extent.previous;
  extent.previous = extent.next = kNone;
}

// ---- Pages

[[gnu::always_inline]] inline PageNext PageTable::Apply(PageId page, Extent* extent,
                                                        PageEntry* entry, PageOp op) {
  if (options_.ops != nullptr) {
    ++(*options_.ops)[static_cast<size_t>(entry->state)][static_cast<size_t>(op)];
  }
  const PageNext next = kNextState[static_cast<size_t>(entry->state)][static_cast<size_t>(op)];
  if (next == PageNext::kBroken) Broken(page, entry->state, op);
  if (next == PageNext::kRefused) return next;
  const auto state = static_cast<PageState>(next);
  if (state == entry->state) return next;
  Space& space = spaces_[extent->space];
  --space.counts[static_cast<size_t>(entry->state)];
  ++space.counts[static_cast<size_t>(state)];
  if (entry->loose) {  // it was held
    entry->loose = false;
    --space.loose;
  }
  entry->state = state;
  if (state == PageState::kFree) Free(page, extent, entry);
  return next;
}

void PageTable::Free(PageId page, Extent* extent, PageEntry* entry) {
  if (entry->generation == kGenerationMax) {
    Space& space = spaces_[extent->space];
    --space.counts[static_cast<size_t>(PageState::kFree)];
    ++space.counts[static_cast<size_t>(PageState::kQuarantined)];
    entry->state = PageState::kQuarantined;
    return;
  }
  ++entry->generation;
  extent->generation = std::max(extent->generation, entry->generation);
  entry->checksum = 0;
  entry->next_free = extent->free_head;
  const bool was_full = extent->in_use == extent->pages;
  extent->free_head = IndexInExtent(page);
  --extent->in_use;
  if (was_full) LinkAvailable(ExtentOf(page).value());
}

PageId PageTable::Reserve(SpaceId id) {
  const uint32_t from = spaces_[id.value()].available;
  PANDO_CHECK(from != kNone) << "space " << id << " has no free page";
  Extent& extent = extents_[from];
  uint32_t index = extent.free_head;
  if (index != kNone) {
    extent.free_head = extent.entries[index].next_free;
    if (extent.free_head != kNone) __builtin_prefetch(&extent.entries[extent.free_head], 1);
  } else {
    index = extent.touched++;
    extent.entries[index].generation = extent.generation;
  }
  if (++extent.in_use == extent.pages) UnlinkAvailable(from);
  const PageId page = MakePageId(ExtentId(from), index);
  Apply(page, &extent, &extent.entries[index], PageOp::kReserve);
  return page;
}

void PageTable::Hold(PageId page) {
  Extent& extent = ExtentOfPage(page);
  PageEntry& entry = extent.entries[IndexInExtent(page)];
  Apply(page, &extent, &entry, PageOp::kHold);
  ++entry.holds;
}

void PageTable::Release(PageRef ref) {
  PANDO_CHECK(ExtentOf(ref.page).value() < extents_end_ &&
              ExtentOfPage(ref.page).entries != nullptr)
      << "page " << ref.page << " is in no space's extent";
  Extent& extent = ExtentOfPage(ref.page);
  PageEntry& entry = extent.entries[IndexInExtent(ref.page)];
  PANDO_CHECK(entry.generation == ref.generation.value() && entry.holds > 0)
      << "page " << ref.page << " generation " << ref.generation << " is not held; it has "
      << entry.generation << ", " << entry.holds << " holds";
  --entry.holds;
  Apply(ref.page, &extent, &entry, entry.holds == 0 ? PageOp::kReleaseLast : PageOp::kRelease);
}

bool PageTable::Commit(PageId page, uint64_t checksum) {
  Extent& extent = ExtentOfPage(page);
  PageEntry& entry = extent.entries[IndexInExtent(page)];
  if (Apply(page, &extent, &entry, PageOp::kCommit) == PageNext::kRefused) return false;
  entry.checksum = checksum;
  return true;
}

bool PageTable::Detach(PageId page) {
  Extent& extent = ExtentOfPage(page);
  PageEntry& entry = extent.entries[IndexInExtent(page)];
  return Apply(page, &extent, &entry, PageOp::kDetach) == PageNext::kFree;
}

void PageTable::SetLoose(PageId page, bool loose) {
  PageEntry& entry = EntryOf(page);
  if (entry.state != PageState::kHeld || entry.loose == loose) return;
  entry.loose = loose;
  Space& space = spaces_[ExtentOfPage(page).space];
  space.loose = loose ? space.loose + 1 : space.loose - 1;
}

// ---- Reads

Bytes PageTable::memory() const {
  uint64_t bytes = extents_.bytes() + spaces_.capacity() * sizeof(Space);
  for (const Space& space : spaces_) {
    bytes += space.extents * space.extent_pages * sizeof(PageEntry);
  }
  return Bytes(bytes);
}

std::string PageTable::CheckExtent(uint32_t id, std::array<uint64_t, kPageStates>* counts,
                                   uint64_t* loose) const {
  const Extent& extent = extents_[id];
  const std::string name = "extent " + std::to_string(id) + ": ";
  uint32_t in_use = 0;
  for (uint32_t i = 0; i < extent.touched; ++i) {
    const PageEntry& entry = extent.entries[i];
    const bool free = entry.state == PageState::kFree;
    ++(*counts)[static_cast<size_t>(entry.state)];
    if (!free) ++in_use;
    if (entry.loose) ++*loose;
    if (entry.loose && entry.state != PageState::kHeld) return name + "a loose page is not held";
    const bool may_hold = entry.state == PageState::kReceiving || entry.state == PageState::kHeld ||
                          (entry.state == PageState::kQuarantined);
    const bool must_hold = may_hold && entry.generation != kGenerationMax;
    if ((must_hold && entry.holds == 0) || (!may_hold && entry.holds > 0)) {
      return name + "page " + std::to_string(i) + " has " + std::to_string(entry.holds) + " holds";
    }
    if (free && entry.generation > extent.generation) return name + "generation ahead of extent";
  }
  (*counts)[static_cast<size_t>(PageState::kFree)] += extent.pages - extent.touched;
  if (in_use != extent.in_use) return name + "pages in use miscounted";
  uint32_t listed = 0;
  for (uint32_t i = extent.free_head; i != kNone; i = extent.entries[i].next_free) {
    if (extent.entries[i].state != PageState::kFree) return name + "a listed page is not free";
    if (++listed > extent.pages) return name + "free list has a loop";
  }
  if (listed != extent.touched - in_use) return name + "free list is incomplete";
  return "";
}

std::string PageTable::Check() const {
  std::vector<std::array<uint64_t, kPageStates>> counts(spaces_.size());
  std::vector<uint64_t> loose(spaces_.size()), owned(spaces_.size()), available(spaces_.size());
  uint64_t unowned = 0, known = 0;
  for (uint32_t i = 0; i < extents_end_; ++i) {
    const Extent& extent = extents_[i];
    if (!extent.known) continue;
    ++known;
    if (extent.space == kNone) {
      ++unowned;
      continue;
    }
    ++owned[extent.space];
    if (extent.in_use < extent.pages) ++available[extent.space];
    std::string broken = CheckExtent(i, &counts[extent.space], &loose[extent.space]);
    if (!broken.empty()) return broken;
  }
  if (known != extents_total_ || unowned != unowned_) return "extents miscounted";
  for (uint32_t s = 0; s < spaces_.size(); ++s) {
    const std::string name = "space " + std::to_string(s) + ": ";
    if (counts[s] != spaces_[s].counts) return name + "page states miscounted";
    if (loose[s] != spaces_[s].loose) return name + "loose pages miscounted";
    if (owned[s] != spaces_[s].extents) return name + "extents miscounted";
    uint64_t listed = 0;
    for (uint32_t i = spaces_[s].available; i != kNone; i = extents_[i].next) ++listed;
    if (listed != available[s]) return name + "extents with free pages miscounted";
  }
  return "";
}

}  // namespace pando
