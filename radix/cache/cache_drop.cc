// Cache: drops, the cut of a block out of the middle with all that lies below it.
#include "radix/cache/cache.h"

namespace pando {

bool Cache::InBlock(PageRef page) const {
  const PageState state = pages_.entry(page.page).state;
  return pages_.ref(page.page) == page && state != PageState::kFree &&
         state != PageState::kQuarantined;
}

// When another drop took the end of the path away, the path no longer leads to what still stands of
// it. The page does: it is one block's, which is found by a look at all runs. A drop may cost as
// much anyway, by what it cuts, and two bad pages on one path are rare.
Cache::Place Cache::FindPage(uint32_t block, ShardId shard, PageId page) const {
  for (uint32_t id = 0; id < tree_.ids(); ++id) {
    const Run& run = tree_.run(id);
    if (!run.live || block < run.depth || block >= run.end()) continue;
    const Place place{id, block - run.depth};
    if (IsPage(place, shard, page)) return place;
  }
  return {};
}

bool Cache::IsPage(Place place, ShardId shard, PageId page) const {
  const Run& run = tree_.run(place.run);
  const BlockShape form = tree_.shape(run);
  return shard.value() < form.shards && PageId(run.pages(form, place.block)[shard.value()]) == page;
}

bool Cache::Drop(PathRef path, BlockCount block, ShardId shard, PageRef page) {
  if (!InBlock(page)) return false;
  const Place place =
      Alive(path) ? Locate(path, block.value()) : FindPage(block.value(), shard, page.page);
  if (place.run == kNoNode || !IsPage(place, shard, page.page)) return false;
  Cut(place.run, place.block);
  return true;
}

// Removes all runs below `top`, deepest first.
void Cache::CutBelow(uint32_t top) {
  uint32_t id = top;
  while (true) {
    const uint32_t child = tree_.run(id).first_child;
    if (child != kNoNode) {
      id = child;
      continue;
    }
    if (id == top) return;
    Run& run = tree_.run(id);
    const uint32_t parent = run.parent;
    if (run.pins > 0) spaces_[run.space].protected_blocks -= run.blocks;
    spaces_[run.space].dropped_blocks += run.blocks;
    DetachBlocks(run, 0, run.blocks);
    RemoveRun(id);
    id = parent;
  }
}

// Cuts block `at` of the run out with all below it. Paths that ended there are void: their pins no
// longer count above. A run that keeps blocks keeps its own pins.
//
//   1. all runs below go          3. what is left above the cut loses the pins that went
//   2. the run's tail goes        4. reservations that lost their end lose their other blocks too
void Cache::Cut(uint32_t id, uint32_t at) {
  CutBelow(id);
  Run& run = tree_.run(id);
  Space& space = spaces_[run.space];
  const uint32_t gone_pins = at > 0 ? run.pins - run.pins_own : run.pins;
  const uint32_t gone_blocks = run.blocks - at;
  if (run.pins > 0) space.protected_blocks -= gone_blocks;
  space.dropped_blocks += gone_blocks;
  DetachBlocks(run, at, run.blocks);
  uint32_t above = id;
  if (at == 0) {
    above = run.parent;
    RemoveRun(id);
  } else {
    tree_.CutTail(id, at);
    policy_->Cut(FactsOf(id));
  }
  for (uint32_t up = above; gone_pins > 0 && !tree_.run(up).is_root(); up = tree_.run(up).parent) {
    Run& pinned = tree_.run(up);
    pinned.pins -= gone_pins;
    if (pinned.pins == 0) SetProtected(&pinned, false);
  }
  UpdateCandidate(above);
  if (gone_pins > 0) CutUnfinished(above);
}

// Incomplete blocks that no reservation can finish any more, because the end of its path has gone,
// go: from the highest one on, with those of other reservations below them. Such blocks lie on one
// path, and what a cut here ends has none above it: this does not call itself a second time.
void Cache::CutUnfinished(uint32_t end) {
  uint32_t highest = kNoNode;
  for (uint32_t id = end; !tree_.run(id).is_root(); id = tree_.run(id).parent) {
    const Run& run = tree_.run(id);
    if (!run.is_complete() && !tree_.HasFiller(run)) highest = id;
  }
  if (highest != kNoNode) Cut(highest, tree_.run(highest).complete);
}

}  // namespace pando
