// Tree: new chains. Everything that can fail is done before anything can be seen.
#include <algorithm>
#include <cstring>
#include <limits>

#include "radix/base/check.h"
#include "radix/tree/tree.h"

namespace pando {

// ---- Memory

uint32_t Tree::NewRun() {
  uint32_t id = free_;
  if (id != kNoNode) {
    free_ = runs_[id].index_next;
  } else {
    const uint64_t ids = uint64_t{used_} + 1;
    if (used_ == kNoNode || !runs_.EnsureSize(ids) || !siblings_.EnsureSize(ids)) return kNoNode;
    id = used_++;
  }
  Run& run = runs_[id];
  const uint32_t generation = run.generation;
  run = Run{};
  run.generation = generation;
  run.live = true;
  ++live_;
  return id;
}

void Tree::FreeRun(uint32_t id) {
  Run& run = runs_[id];
  FreeColumns(&run);
  if (run.scope != kNoNode) scopes_.Release(run.scope);
  run.scope = kNoNode;
  run.live = false;
  --live_;
  // A run whose generations are used up is not used again.
  if (run.generation == std::numeric_limits<uint32_t>::max()) return;
  ++run.generation;
  run.index_next = free_;
  free_ = id;
}

bool Tree::NewColumns(BlockShape form, uint32_t capacity, bool extras, Columns* columns) {
  const uint64_t words = form.Words(capacity, extras);
  columns->words = columns_.Take(words);
  if (columns->words == nullptr) return false;
  columns->capacity = capacity;
  columns->has_extras = extras;
  words_ += words;
  return true;
}

void Tree::FreeColumns(Run* run) {
  if (run->words == nullptr) return;
  const uint64_t words = shape(*run).Words(run->capacity, run->has_extras);
  columns_.Give(run->words, words);
  words_ -= words;
  run->words = nullptr;
}

void Tree::SetColumns(Run* run, const Columns& columns) {
  run->words = columns.words;
  run->capacity = columns.capacity;
  run->has_extras = columns.has_extras;
}

void Tree::CopyColumns(const Run& from, Range blocks, Run* to, uint32_t at) const {
  const BlockShape form = shape(from);
  const size_t count = blocks.to - blocks.from;
  std::memcpy(to->tokens(form, at), from.tokens(form, blocks.from),
              count * form.tokens * sizeof(uint32_t));
  std::memcpy(to->pages(form, at), from.pages(form, blocks.from),
              count * form.shards * sizeof(uint32_t));
  if (!to->has_extras) return;
  if (from.has_extras) {
    std::memcpy(to->extras(form, at), from.extras(form, blocks.from), count * sizeof(uint32_t));
  } else {
    std::fill_n(to->extras(form, at), count, kNoNode);
  }
}

// Releases the blocks' extra strings; false if there were none at all in the run.
bool Tree::ForgetExtras(Run* run, Range blocks) {
  if (!run->has_extras) return false;
  for (uint32_t block = blocks.from; block < blocks.to; ++block) {
    uint32_t* id = run->extras(shape(*run), block);
    if (*id != kNoNode) extras_.Release(*id);
    *id = kNoNode;
  }
  return true;
}

// ---- Chains

// The path of scopes up to the reader's section, with a reference; kNoNode: no memory.
uint32_t Tree::InternPath(const PromptReader& reader) {
  uint32_t path = kNoNode;
  for (uint32_t i = 0; i < reader.entered_end(); ++i) {
    if (reader.Repeats(i)) continue;
    const uint32_t next = scopes_.Intern(path, reader.scope(i));
    if (path != kNoNode) scopes_.Release(path);
    if (next == kNoNode) return kNoNode;
    path = next;
  }
  return path;
}

// Gives the run its columns and the content of the prompt's blocks. False: no memory; what was
// allocated is the run's.
bool Tree::FillRun(Run* run, PromptReader* reader, Range blocks) {
  run->scope = InternPath(*reader);
  if (run->scope == kNoNode) return false;
  const uint32_t count = blocks.to - blocks.from;
  bool extras = false;
  if (!reader->NoExtraFrom(blocks.from)) {
    PromptReader ahead = *reader;
    for (uint32_t b = blocks.from; b < blocks.to && !extras; ++b) extras = !ahead.Extra(b).empty();
  }
  const BlockShape form = shape(*run);
  Columns columns;
  if (!NewColumns(form, count, extras, &columns)) return false;
  SetColumns(run, columns);
  run->blocks = count;
  std::memcpy(run->words, reader->tokens(blocks.from),
              uint64_t{count} * form.tokens * sizeof(uint32_t));
  if (!extras) return true;
  std::fill_n(run->extras(form, 0), count, kNoNode);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view bytes = reader->Extra(blocks.from + i);
    if (bytes.empty()) continue;
    const uint32_t id = extras_.Intern(kNoNode, bytes);
    if (id == kNoNode) return false;
    *run->extras(form, i) = id;
  }
  return true;
}

std::optional<Tree::Chain> Tree::Prepare(uint32_t parent, uint32_t at, const Prompt& prompt,
                                         uint32_t from, uint32_t to, uint64_t writer) {
  const Space& space = spaces_[runs_[parent].space];
  PromptReader reader(prompt, space.shape.tokens);
  PANDO_CHECK(from < to && to <= reader.blocks()) << from << ".." << to;
  BlockKey key = KeyAt(runs_[parent], at);
  if (at == runs_[parent].blocks && !runs_[parent].is_root()) {
    runs_[parent].end_key = key;  // it will have children soon; a key is no change
    runs_[parent].has_end_key = true;
  }
  Chain chain;
  for (uint32_t block = from; block < to;) {
    reader.EnterSectionOf(block);
    const Range range{block, std::min({to, block + kRunBlocksMax, reader.section_end()})};
    const uint32_t id = NewRun();
    if (id == kNoNode) break;
    Run& run = runs_[id];
    run.space = runs_[parent].space;
    run.parent = chain.bottom == kNoNode ? parent : chain.bottom;
    run.depth = block;
    run.writer = writer;
    if (chain.top == kNoNode) chain.top = id;
    if (chain.bottom != kNoNode) runs_[chain.bottom].first_child = id;
    chain.bottom = id;
    PromptReader extras = reader;
    if (!FillRun(&run, &extras, range)) break;
    if (block == reader.section_begin()) key = EnterKey(space, key, reader);
    run.first_key = keys_.Block(key, reader.block(block), ExtraOf(run, 0));
    block = range.to;
    if (block == to) return chain;
    // Another run follows below this one.
    run.end_key = KeyAt(run, run.blocks);
    run.has_end_key = true;
    key = run.end_key;
  }
  Abandon(chain);
  return std::nullopt;
}

void Tree::Abandon(Chain chain) {
  uint32_t id = chain.top;
  while (id != kNoNode) {
    Run& run = runs_[id];
    const uint32_t below = run.first_child;
    if (run.words != nullptr) ForgetExtras(&run, {0, run.blocks});
    FreeRun(id);
    id = below;
  }
}

void Tree::Link(Chain chain, uint32_t parent) {
  ++version_;
  KnowEndKey(&runs_[parent]);
  Space& space = spaces_[runs_[parent].space];
  for (uint32_t id = chain.top; id != kNoNode;) {
    Run& run = runs_[id];
    const uint32_t below = run.first_child;
    run.first_child = kNoNode;
    run.filler = chain.bottom;
    run.filler_generation = runs_[chain.bottom].generation;
    Adopt(parent, id);
    index_.Insert(id);
    ++space.runs;
    space.blocks += run.blocks;
    parent = id;
    id = below;
  }
}

}  // namespace pando
