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

bool Cache::Commit(PathRef path, BlockCount block, ShardId shard, PageRef page, uint64_t checksum) {
  if (!Alive(path) || block >= path.blocks) return false;
  const Place place = Locate(path, block.value());
  if (place.run == kNoNode) return false;
  Run& run = tree_.run(place.run);
  const BlockShape form = tree_.shape(run);
  if (shard.value() >= form.shards) return false;
  const PageId there(run.pages(form, place.block)[shard.value()]);
  if (!(pages_.ref(there) == page) || !pages_.Commit(there, checksum)) return false;
  if (place.block != run.complete) return true;
  if (form.shards == 1) ++run.complete;
  while (run.complete < run.blocks && BlockComplete(run, run.complete)) ++run.complete;
  return true;
}

}  // namespace pando
