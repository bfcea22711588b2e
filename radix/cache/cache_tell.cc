// Cache: which blocks can be found, told to the listener as it changes. Nothing here allocates but
// the table of told names: without memory for it a block is not told, nor is what lies below it.
#include <algorithm>
#include <array>

#include "radix/base/check.h"
#include "radix/cache/cache.h"

namespace pando {
namespace {

constexpr size_t kKeysAtOnce = 64;

}  // namespace

void Cache::SetListener(BlockListener* listener) {
  for (uint32_t id = 0; id < tree_.spaces(); ++id) {
    PANDO_CHECK(tree_.space(id).blocks == 0) << "a listener is set before there are blocks";
  }
  listener_ = listener;
}

PageId Cache::FirstPage(const Run& run, uint32_t block) const {
  return PageId(*run.pages(tree_.shape(run), block));
}

std::optional<uint64_t> Cache::ToldKey(const Match& match) const {
  if (match.blocks == BlockCount(0)) return std::nullopt;
  const uint64_t key =
      told_.Get(FirstPage(tree_.run(match.run.value()), match.run_blocks.value() - 1));
  return key == 0 ? std::nullopt : std::optional(key);
}

// Whether what lies above the run's block `block` has been told; `above` is its name, 0: none.
bool Cache::ToldAbove(const Run& run, uint32_t block, uint64_t* above) const {
  *above = 0;
  if (block > 0) {
    *above = told_.Get(FirstPage(run, block - 1));
    return *above != 0;
  }
  const Run& parent = tree_.run(run.parent);
  if (parent.is_root()) return true;
  if (!parent.is_complete()) return false;
  *above = told_.Get(FirstPage(parent, parent.blocks - 1));
  return *above != 0;
}

// The key of the block. Blocks are mostly told in order, so the last one is remembered.
BlockKey Cache::KeyToTell(uint32_t id, uint32_t block) {
  const Run& run = tree_.run(id);
  const uint32_t depth = run.depth + block;
  const bool next = last_told_.run == id && last_told_.generation == run.generation &&
                    last_told_.depth + 1 == depth && block > 0;
  const BlockKey key =
      next ? tree_.NextKey(run, block, last_told_.key) : tree_.KeyAt(run, block + 1);
  last_told_ = {.run = id, .generation = run.generation, .depth = depth, .key = key};
  return key;
}

// Tells the run's complete blocks from `from` on, if what lies above them is told.
void Cache::TellRun(uint32_t id, uint32_t from) {
  const Run& run = tree_.run(id);
  uint64_t above = 0;
  if (!ToldAbove(run, from, &above)) return;
  std::array<uint64_t, kKeysAtOnce> keys;
  for (uint32_t block = from; block < run.complete;) {
    size_t count = 0;
    while (block < run.complete && count < keys.size()) {
      const uint64_t key = KeyToTell(id, block).low;
      if (key == 0 || !told_.Set(FirstPage(run, block), key)) break;
      keys[count++] = key;
      ++block;
    }
    if (count == 0) return;
    listener_->Appeared(above == 0 ? std::nullopt : std::optional(above), {keys.data(), count});
    above = keys[count - 1];
  }
}

// Blocks of the run from `from` on are complete now; so may be, by that, all that hangs below.
void Cache::TellComplete(uint32_t top, uint32_t from) {
  if (listener_ == nullptr) return;
  TellRun(top, from);
  uint32_t id = top;
  while (true) {
    const Run& run = tree_.run(id);
    if (run.is_complete() && run.first_child != kNoNode) {
      id = run.first_child;
    } else {
      while (id != top && tree_.next_sibling(id) == kNoNode) id = tree_.run(id).parent;
      if (id == top) return;
      id = tree_.next_sibling(id);
    }
    TellRun(id, 0);
  }
}

// The run's blocks [from, to) go: from the last one up.
void Cache::TellGone(const Run& run, uint32_t from, uint32_t to) {
  if (listener_ == nullptr) return;
  std::array<uint64_t, kKeysAtOnce> keys;
  while (to > from) {
    size_t count = 0;
    while (to > from && count < keys.size()) {
      const uint64_t key = told_.Take(FirstPage(run, --to));
      if (key != 0) keys[count++] = key;
    }
    if (count > 0) listener_->Vanished({keys.data(), count});
  }
}

}  // namespace pando
