// Tree: changes to the shape of what is there.
#include <algorithm>
#include <utility>

#include "radix/base/check.h"
#include "radix/tree/tree.h"

namespace pando {

// ---- Links

void Tree::Adopt(uint32_t parent, uint32_t child) {
  Run& above = runs_[parent];
  runs_[child].parent = parent;
  siblings_[child] = {.previous = kNoNode, .next = above.first_child};
  if (above.first_child != kNoNode) siblings_[above.first_child].previous = child;
  above.first_child = child;
  ++above.children;
}

void Tree::Disown(uint32_t child) {
  Run& above = runs_[runs_[child].parent];
  const auto [previous, next] = siblings_[child];
  (previous == kNoNode ? above.first_child : siblings_[previous].next) = next;
  if (next != kNoNode) siblings_[next].previous = previous;
  siblings_[child] = {};
  --above.children;
}

// ---- Split and merge
//
//   before   parent ─► R [a b | c d] ─► children        1. memory for both parts
//   after    parent ─► U [a b] ─► R [c d] ─► children   2. U takes R's first key and place above
//                                                       3. R gets the key of c, and hangs below U
uint32_t Tree::Split(uint32_t lower, uint32_t at, uint32_t lower_complete) {
  PANDO_CHECK(at > 0 && at < runs_[lower].blocks) << "at " << at << " of " << runs_[lower].blocks;
  // 1.
  const BlockShape form = shape(runs_[lower]);
  const bool extras = runs_[lower].has_extras;
  Columns low, up;
  const uint32_t upper = NewRun();
  if (upper == kNoNode) return kNoNode;
  Run& run = runs_[lower];
  Run& above = runs_[upper];
  above.space = run.space;
  if (!NewColumns(form, at, extras, &up)) {
    FreeRun(upper);
    return kNoNode;
  }
  SetColumns(&above, up);
  if (!NewColumns(form, run.blocks - at, extras, &low)) {
    FreeRun(upper);
    return kNoNode;
  }
  // 2.
  ++version_;
  above.scope = run.scope;
  scopes_.AddRef(run.scope);
  above.depth = run.depth;
  above.blocks = at;
  above.complete = std::min(run.complete, at);
  above.writer = run.writer;
  above.filler = run.filler;
  above.filler_generation = run.filler_generation;
  above.pins = run.pins;
  above.first_key = run.first_key;
  CopyColumns(run, {0, at}, &above, 0);
  index_.Replace(lower, upper);
  const uint32_t parent = run.parent;
  Disown(lower);
  Adopt(parent, upper);
  // 3.
  Run rest = run;
  SetColumns(&rest, low);
  CopyColumns(run, {at, run.blocks}, &rest, 0);
  FreeColumns(&run);
  SetColumns(&run, low);
  run.blocks -= at;
  run.depth += at;
  run.complete = lower_complete;
  KnowEndKey(&above);
  run.first_key = keys_.Block(above.end_key, {run.words, form.tokens}, ExtraOf(run, 0));
  Adopt(upper, lower);
  index_.Insert(lower);
  ++spaces_[run.space].runs;
  return upper;
}

bool Tree::CanMerge(uint32_t lower) const {
  const Run& run = runs_[lower];
  if (run.is_root()) return false;
  const Run& above = runs_[run.parent];
  return !above.is_root() && above.children == 1 && above.scope == run.scope &&
         above.is_complete() && run.is_complete() && above.blocks + run.blocks <= kRunBlocksMax;
}

//   before   parent ─► U [a b] ─► R [c d] ─► children   1. columns that take both: U's own if they
//   after    parent ─► R [a b c d] ─► children             have room, else new ones, with room to
//                                                           grow where a chain grows block by block
//                                                        2. R takes U's first key and place above
bool Tree::Merge(uint32_t lower) {
  PANDO_CHECK(CanMerge(lower)) << "run " << lower;
  Run& run = runs_[lower];
  const uint32_t upper = run.parent;
  Run& above = runs_[upper];
  // 1.
  const uint32_t total = above.blocks + run.blocks;
  const bool extras = above.has_extras || run.has_extras;
  if (above.capacity < total || above.has_extras != extras) {
    const bool grows = run.blocks * 4 <= above.blocks;
    const uint32_t capacity = grows ? std::min(kRunBlocksMax, total + total / 4) : total;
    Columns columns;
    if (!NewColumns(shape(run), capacity, extras, &columns)) return false;
    Run joined = above;
    SetColumns(&joined, columns);
    CopyColumns(above, {0, above.blocks}, &joined, 0);
    FreeColumns(&above);
    SetColumns(&above, columns);
  }
  CopyColumns(run, {0, run.blocks}, &above, above.blocks);
  // 2.
  ++version_;
  std::swap(run.words, above.words);
  std::swap(run.capacity, above.capacity);
  std::swap(run.has_extras, above.has_extras);
  index_.Remove(lower);
  index_.Replace(upper, lower);
  run.first_key = above.first_key;
  run.depth = above.depth;
  run.blocks = run.complete = total;
  Disown(lower);
  const uint32_t parent = above.parent;
  Disown(upper);
  Adopt(parent, lower);
  --spaces_[run.space].runs;
  FreeRun(upper);
  return true;
}

// ---- Cuts

void Tree::CutTail(uint32_t id, uint32_t blocks) {
  Run& run = runs_[id];
  PANDO_CHECK(blocks > 0 && blocks < run.blocks && run.children == 0)
      << blocks << " of " << run.blocks << ", " << run.children << " children";
  ++version_;
  ForgetExtras(&run, {blocks, run.blocks});
  spaces_[run.space].blocks -= run.blocks - blocks;
  run.blocks = blocks;
  run.complete = std::min(run.complete, blocks);
  run.has_end_key = false;
  // What the columns no longer need goes back, now and then; if there is no memory to do it, later.
  Columns columns;
  if (run.capacity < 4 * blocks || !NewColumns(shape(run), blocks, run.has_extras, &columns)) {
    return;
  }
  Run small = run;
  SetColumns(&small, columns);
  CopyColumns(run, {0, blocks}, &small, 0);
  FreeColumns(&run);
  SetColumns(&run, columns);
}

void Tree::Remove(uint32_t id) {
  Run& run = runs_[id];
  PANDO_CHECK(!run.is_root() && run.children == 0) << "run " << id << " has " << run.children;
  ++version_;
  Space& space = spaces_[run.space];
  --space.runs;
  space.blocks -= run.blocks;
  ForgetExtras(&run, {0, run.blocks});
  index_.Remove(id);
  Disown(id);
  FreeRun(id);
}

// ---- Prefetch

void Tree::PrefetchRun(uint32_t id) const {
  const auto* lines = reinterpret_cast<const char*>(&runs_[id]);
  __builtin_prefetch(lines, 1);
  __builtin_prefetch(lines + 64, 1);
  __builtin_prefetch(&siblings_[id], 1);
}

void Tree::PrefetchNeighbours(uint32_t id) const {
  const Run& run = runs_[id];
  const auto [previous, next] = siblings_[id];
  if (previous != kNoNode) __builtin_prefetch(&siblings_[previous], 1);
  if (next != kNoNode) __builtin_prefetch(&siblings_[next], 1);
  if (run.blocks > 0) {
    __builtin_prefetch(run.words, 1);  // where a free piece keeps its link
    __builtin_prefetch(run.pages(shape(run), run.blocks - 1));
  }
  index_.Prefetch(run.first_key.low);
}

void Tree::PrefetchChain(uint32_t id) const {
  index_.PrefetchFirst(runs_[id].first_key.low);
}

}  // namespace pando
