#include "radix/tree/tree.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "radix/base/check.h"

namespace pando {
namespace {

// Compares this much at once, so that a difference is found without reading far beyond it.
constexpr size_t kCompareBytes = 4096;

// How many of `count` blocks of `bytes` bytes each are equal, counted from the first.
uint32_t EqualBlocks(const uint32_t* a, const uint32_t* b, uint32_t count, size_t bytes) {
  const auto* x = reinterpret_cast<const char*>(a);
  const auto* y = reinterpret_cast<const char*>(b);
  const auto at_once = static_cast<uint32_t>(std::max<size_t>(1, kCompareBytes / bytes));
  uint32_t equal = 0;
  while (equal < count) {
    const uint32_t step = std::min(at_once, count - equal);
    if (std::memcmp(x + equal * bytes, y + equal * bytes, step * bytes) != 0) break;
    equal += step;
  }
  while (equal < count && std::memcmp(x + equal * bytes, y + equal * bytes, bytes) == 0) ++equal;
  return equal;
}

uint64_t SeedFrom(const KeyChain& keys) {
  return keys.Root("interned strings", "").low;
}

}  // namespace

Tree::Tree(const Options& options)
    : keys_(options.key_secret, options.collide),
      index_(Access{&runs_}),
      scopes_(SeedFrom(keys_)),
      extras_(SeedFrom(keys_) + 1) {
  // The public scope stays for ever.
  if (scopes_.Intern(kNoNode, "") == kNoNode) throw std::bad_alloc();
}

Tree::~Tree() {
  for (uint32_t id = 0; id < used_; ++id) FreeColumns(&runs_[id]);
}

bool Tree::AddSpace(const std::string& identity, BlockShape shape) {
  constexpr size_t kSpacesMax = 256;  // Run::space
  if (spaces_.size() == kSpacesMax) return false;
  try {
    Space space;
    space.identity = identity;
    space.shape = shape;
    space.public_key = keys_.Root(identity, "");
    spaces_.reserve(spaces_.size() + 1);
    space.root = NewRun();
    if (space.root == kNoNode) return false;
    Run& root = runs_[space.root];
    root.space = static_cast<uint8_t>(spaces_.size());
    spaces_.push_back(std::move(space));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

std::string Tree::ScopePath(uint32_t scope) const {
  std::string path;
  for (uint32_t id = scope; id != kNoNode; id = scopes_.parent(id)) {
    const std::string_view name = scopes_.bytes(id);
    if (!path.empty()) path.insert(0, 1, '>');
    path.insert(0, name.empty() ? std::string_view("public") : name);
  }
  return path;
}

// ---- Walk

// The key above the first block of the section: of the chain above, with the scopes entered.
BlockKey Tree::EnterKey(const Space& space, BlockKey above, const PromptReader& reader) const {
  uint32_t i = reader.entered_begin();
  if (i == 0) {
    above =
        reader.scope(0).empty() ? space.public_key : keys_.Root(space.identity, reader.scope(0));
    ++i;
  }
  for (; i < reader.entered_end(); ++i) {
    if (!reader.Repeats(i)) above = keys_.Scope(above, reader.scope(i));
  }
  return above;
}

// The interned path of the reader's section, which follows `path`; kNoNode: no run has it.
uint32_t Tree::FindPath(uint32_t path, const PromptReader& reader) const {
  for (uint32_t i = reader.entered_begin(); i < reader.entered_end(); ++i) {
    if (reader.Repeats(i)) continue;
    if (i == 0 && reader.scope(0).empty()) {
      path = 0;  // the public scope's own id
      continue;
    }
    path = scopes_.Find(path, reader.scope(i));
    if (path == kNoNode) return kNoNode;
  }
  return path;
}

std::string_view Tree::ExtraOf(const Run& run, uint32_t block) const {
  if (!run.has_extras) return {};
  const uint32_t id = *run.extras(shape(run), block);
  return id == kNoNode ? std::string_view() : extras_.bytes(id);
}

uint32_t Tree::FindChild(uint32_t parent, BlockKey key, uint32_t scope, const uint32_t* tokens,
                         std::string_view extra) const {
  return index_.Find(key.low, [&](uint32_t id) {
    const Run& run = runs_[id];
    if (run.first_key.high != key.high || run.parent != parent || run.scope != scope) return false;
    return std::memcmp(run.words, tokens, shape(run).tokens * sizeof(uint32_t)) == 0 &&
           ExtraOf(run, 0) == extra;
  });
}

// How many of the prompt's blocks from `block` on, at most up to `limit`, the run begins with.
uint32_t Tree::MatchRun(const Run& run, PromptReader* reader, uint32_t block,
                        uint32_t limit) const {
  const uint32_t end = std::min(limit, reader->section_end());
  const uint32_t count = std::min(run.blocks, end - block);
  const size_t bytes = shape(run).tokens * sizeof(uint32_t);
  const uint32_t equal = EqualBlocks(run.words, reader->tokens(block), count, bytes);
  if (!run.has_extras && reader->NoExtraFrom(block)) return equal;
  return MatchExtras(run, reader, block, equal);
}

uint32_t Tree::MatchExtras(const Run& run, PromptReader* reader, uint32_t block,
                           uint32_t count) const {
  uint32_t equal = 0;
  while (equal < count && ExtraOf(run, equal) == reader->Extra(block + equal)) ++equal;
  return equal;
}

Tree::Walked Tree::Walk(uint32_t space_id, const Prompt& prompt, uint32_t limit,
                        const uint64_t* writer) const {
  const Space& space = spaces_[space_id];
  PromptReader reader(prompt, space.shape.tokens);
  limit = std::min(limit, reader.blocks());
  Walked walked{.run = space.root};
  uint32_t path = kNoNode;
  while (walked.blocks < limit) {
    walked.stop = Stop::kAbsent;
    const Run& above = runs_[walked.run];
    if (above.children == 0) return walked;
    // 1. The next block's key, in the scope that it is in.
    BlockKey key = above.end_key;
    if (walked.blocks >= reader.section_end()) {
      reader.EnterSectionOf(walked.blocks);
      key = EnterKey(space, key, reader);
      path = FindPath(path, reader);
      if (path == kNoNode) return walked;
    }
    const std::string_view extra = reader.Extra(walked.blocks);
    key = keys_.Block(key, reader.block(walked.blocks), extra);
    // 2. The child that begins with it.
    const uint32_t child = FindChild(walked.run, key, path, reader.tokens(walked.blocks), extra);
    if (child == kNoNode) return walked;
    ++walked.runs_visited;
    // 3. How far it goes, and may be gone.
    const Run& run = runs_[child];
    const uint32_t equal = MatchRun(run, &reader, walked.blocks, limit);
    const bool pass = run.is_complete() || (writer != nullptr && *writer == run.writer);
    const uint32_t usable = pass ? equal : std::min(equal, run.complete);
    if (usable > 0) {
      walked.run = child;
      walked.run_blocks = usable;
      walked.blocks += usable;
    }
    if (usable < equal) {
      walked.stop = Stop::kInFlight;
      walked.writer = run.writer;
      return walked;
    }
    if (usable < run.blocks && walked.blocks < limit) return walked;
  }
  walked.stop = Stop::kEnd;
  return walked;
}

// ---- Keys

void Tree::AppendKeys(uint32_t space_id, const Prompt& prompt, const Walked& walked, uint32_t to,
                      std::vector<uint64_t>* lows) const {
  const Space& space = spaces_[space_id];
  PromptReader reader(prompt, space.shape.tokens);
  to = std::min(to, reader.blocks());
  if (walked.blocks > 0) reader.EnterSectionOf(walked.blocks - 1);  // the key above has entered it
  BlockKey key = KeyAt(runs_[walked.run], walked.run_blocks);
  for (uint32_t block = walked.blocks; block < to; ++block) {
    if (block >= reader.section_end()) {
      reader.EnterSectionOf(block);
      key = EnterKey(space, key, reader);
    }
    const std::string_view extra = reader.Extra(block);
    key = keys_.Block(key, reader.block(block), extra);
    lows->push_back(key.low);
  }
}

BlockKey Tree::KeyAt(const Run& run, uint32_t at) const {
  if (run.is_root()) return {};
  if (run.has_end_key && at == run.blocks) return run.end_key;
  BlockKey key = run.first_key;
  const BlockShape form = shape(run);
  if (!run.has_extras) {
    return keys_.Blocks(key, {run.tokens(form, 1), uint64_t{at - 1} * form.tokens}, form.tokens);
  }
  for (uint32_t block = 1; block < at; ++block) key = NextKey(run, block, key);
  return key;
}

BlockKey Tree::NextKey(const Run& run, uint32_t block, BlockKey above) const {
  const BlockShape form = shape(run);
  return keys_.Block(above, {run.tokens(form, block), form.tokens}, ExtraOf(run, block));
}

void Tree::KnowEndKey(Run* run) {
  if (run->has_end_key) return;
  run->end_key = KeyAt(*run, run->blocks);
  run->has_end_key = true;
}

uint64_t Tree::memory() const {
  uint64_t bytes = runs_.bytes() + siblings_.bytes() + columns_.bytes() + index_.bytes() +
                   scopes_.memory() + extras_.memory() + spaces_.capacity() * sizeof(Space);
  for (const Space& space : spaces_) bytes += space.identity.capacity();
  return bytes;
}

}  // namespace pando
