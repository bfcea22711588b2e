// Cache: holds on pages and commits.
#include <algorithm>
#include <new>

#include "radix/base/check.h"
#include "radix/cache/cache.h"

namespace pando {

bool Cache::BlockComplete(const Run& run, uint32_t block) const {
  const BlockShape form = tree_.shape(run);
  const uint32_t* page = run.pages(form, block);
  return std::all_of(page, page + form.shards, [this](uint32_t id) {
    const PageState state = pages_.entry(PageId(id)).state;
    return state == PageState::kCommitted || state == PageState::kHeld;
  });
}

bool Cache::Hold(PathRef path, BlockCount from, BlockCount to, ShardId shard,
                 std::vector<PageView>* pages) {
  if (!Alive(path) || from > to || to > path.blocks) return false;
  if (from == to) return true;
  Place place = Locate(path, to.value() - 1);
  if (place.run == kNoNode) return false;
  const uint32_t shards = tree_.shape(tree_.run(place.run)).shards;
  if (shard.value() >= shards) return false;
  const size_t begin = pages->size();
  try {
    pages->resize(begin + (to - from).value());
  } catch (const std::bad_alloc&) {
    return false;
  }
  // From the last block up to the first, run by run.
  PageView* view = pages->data() + pages->size();
  for (uint32_t left = (to - from).value(); left > 0;) {
    const Run& run = tree_.run(place.run);
    const uint32_t* column = run.pages(tree_.shape(run), 0) + shard.value();
    const uint32_t count = std::min(left, place.block + 1);
    for (uint32_t i = 0; i < count; ++i) {
      const PageId page(column[uint64_t{place.block - i} * shards]);
      pages_.Hold(page);
      if (run.pins == 0) pages_.SetLoose(page, true);
      *--view = {pages_.ref(page), pages_.entry(page).checksum};
    }
    left -= count;
    if (left > 0) place = {run.parent, tree_.run(run.parent).blocks - 1};
  }
  return true;
}

// Run by run, downwards; the pages of a run by one walk along its column.
BlockCount Cache::Commit(PathRef path, BlockCount from, ShardId shard,
                         std::span<const PageView> pages, std::span<const uint64_t> checksums) {
  if (!Alive(path)) return BlockCount(0);
  const auto wanted = static_cast<uint32_t>(std::min(pages.size(), checksums.size()));
  uint32_t done = 0;
  while (done < wanted && from + BlockCount(done) < path.blocks) {
    const Place place = Locate(path, from.value() + done);
    if (place.run == kNoNode) break;
    Run& run = tree_.run(place.run);
    const uint32_t shards = tree_.shape(run).shards;
    if (shard.value() >= shards) break;
    const uint32_t* column = run.pages(tree_.shape(run), 0) + shard.value();
    const uint32_t end = std::min(run.blocks, place.block + wanted - done);
    uint32_t block = place.block;
    while (block < end && pages_.Commit(PageId(column[uint64_t{block} * shards]), pages[done].page,
                                        checksums[done])) {
      ++block;
      ++done;
    }
    if (place.block <= run.complete && block > run.complete) {
      const uint32_t before = run.complete;
      if (shards == 1) run.complete = block;
      while (run.complete < run.blocks && BlockComplete(run, run.complete)) ++run.complete;
      if (run.complete > before) TellComplete(place.run, before);
    }
    if (block < end) break;
  }
  return BlockCount(done);
}

bool Cache::Committed(PageRef page) const {
  const PageState state = pages_.entry(page.page).state;
  return pages_.ref(page.page) == page &&
         (state == PageState::kCommitted || state == PageState::kHeld);
}

// The pages of the reservation that are still to be committed.
uint64_t Cache::PagesToWrite(const Reservation& reservation) const {
  const PathRef path = reservation.path;
  if (reservation.status != ReserveStatus::kOk || !Alive(path)) return 0;
  uint64_t pages = 0;
  for (uint32_t id = path.run.value(); tree_.run(id).end() > reservation.from.value();) {
    const Run& run = tree_.run(id);
    const uint32_t* page = run.pages(tree_.shape(run), 0);
    for (uint64_t i = 0; i < uint64_t{run.blocks} * tree_.shape(run).shards; ++i) {
      const PageState state = pages_.entry(PageId(page[i])).state;
      pages += state == PageState::kReserved || state == PageState::kReceiving ? 1 : 0;
    }
    id = run.parent;
  }
  return pages;
}

}  // namespace pando
