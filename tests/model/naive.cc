#include "tests/model/naive.h"

#include <algorithm>

namespace pando::model {
namespace {

std::string Sized(std::string_view bytes) {
  return std::to_string(bytes.size()) + ":" + std::string(bytes);
}

}  // namespace

std::vector<std::string> NaiveCache::Names(const Prompt& prompt) const {
  std::vector<std::string> names;
  std::string name;
  for (uint32_t b = 0; (uint64_t{b} + 1) * block_tokens_ <= prompt.tokens.size(); ++b) {
    const uint64_t end = (uint64_t{b} + 1) * block_tokens_;
    std::vector<std::string> scopes;
    if (prompt.segments.empty()) scopes.push_back("");
    for (const Segment& segment : prompt.segments) {
      if (scopes.empty() || scopes.back() != segment.scope) scopes.emplace_back(segment.scope);
      if (segment.end.value() >= end) break;
    }
    std::string content;
    for (const std::string& scope : scopes) content += "s" + Sized(scope);
    for (uint64_t t = end - block_tokens_; t < end; ++t) {
      content += "t" + std::to_string(prompt.tokens[t]);
    }
    for (const BlockExtra& extra : prompt.extras) {
      if (extra.block.value() == b && !extra.bytes.empty()) content += "e" + Sized(extra.bytes);
    }
    name += Sized(content);
    names.push_back(name);
  }
  return names;
}

NaiveCache::Found NaiveCache::Find(const Prompt& prompt, uint32_t limit) const {
  Found found;
  for (const std::string& name : Names(prompt)) {
    if (found.blocks == limit) return found;
    const auto at = blocks_.find(name);
    if (at == blocks_.end())
      found.stop = Stop::kAbsent;
    else if (!at->second->Complete())
      found.stop = Stop::kInFlight;
    if (found.stop != Stop::kEnd) return found;
    ++found.blocks;
  }
  return found;
}

void NaiveCache::Touch(const NaivePath& path) {
  for (auto block = path.blocks.rbegin(); block != path.blocks.rend(); ++block) {
    if ((*block)->alive) (*block)->used = ++clock_;
  }
}

std::shared_ptr<NaivePath> NaiveCache::Pin(const Prompt& prompt, uint32_t blocks) {
  auto path = std::make_shared<NaivePath>();
  const std::vector<std::string> names = Names(prompt);
  for (uint32_t b = 0; b < blocks; ++b) {
    path->blocks.push_back(blocks_.at(names[b]));
    ++path->blocks.back()->pins;
  }
  Touch(*path);
  paths_.push_back(path);
  return path;
}

void NaiveCache::Unregister(const std::shared_ptr<NaivePath>& path) {
  if (!path->alive) return;
  path->alive = false;
  for (const BlockPtr& block : path->blocks) --block->pins;
  paths_.erase(std::find(paths_.begin(), paths_.end(), path));
}

void NaiveCache::Unpin(const std::shared_ptr<NaivePath>& path) {
  if (!path->alive) return;
  Unregister(path);
  Touch(*path);
}

uint32_t NaiveCache::Freed(const NaiveBlock& block) const {
  return static_cast<uint32_t>(std::count(block.holds.begin(), block.holds.end(), 0u));
}

uint64_t NaiveCache::Evictable(const NaivePath& spared) const {
  uint64_t pages = 0;
  for (const auto& [name, block] : blocks_) {
    const bool on_path =
        std::find(spared.blocks.begin(), spared.blocks.end(), block) != spared.blocks.end();
    if (block->pins == 0 && !on_path) pages += Freed(*block);
  }
  return pages;
}

BlockPtr NaiveCache::Victim() const {
  BlockPtr oldest;
  for (const auto& [name, block] : blocks_) {
    if (block->pins > 0 || block->children > 0) continue;
    if (oldest == nullptr || block->used < oldest->used) oldest = block;
  }
  return oldest;
}

void NaiveCache::Remove(const BlockPtr& block) {
  quarantined_ += shards_ - Freed(*block);
  block->alive = false;
  if (block->parent != nullptr) --block->parent->children;
  blocks_.erase(block->name);
}

ReserveStatus NaiveCache::Reserve(const Prompt& prompt, uint32_t to, uint64_t writer,
                                  std::shared_ptr<NaivePath>* result) {
  std::vector<std::string> names = Names(prompt);
  names.resize(std::min<size_t>(names.size(), to));
  auto path = std::make_shared<NaivePath>();
  for (const std::string& name : names) {
    const auto at = blocks_.find(name);
    if (at == blocks_.end()) break;
    if (!at->second->Complete() && at->second->writer != writer) return ReserveStatus::kInFlight;
    path->blocks.push_back(at->second);
  }
  const auto from = static_cast<uint32_t>(path->blocks.size());
  if (from == names.size()) return ReserveStatus::kNothing;
  // Free pages, then extents, then what is cached.
  const uint64_t wanted = (names.size() - from) * shards_;
  const uint64_t free = Counts().free;
  const uint64_t missing = wanted > free ? wanted - free : 0;
  const uint64_t take = std::min(extents_ - owned_, (missing + extent_pages_ - 1) / extent_pages_);
  if (free + take * extent_pages_ + Evictable(*path) < wanted) return ReserveStatus::kFull;
  owned_ += take;
  for (const BlockPtr& block : path->blocks) ++block->pins;
  while (Counts().free < wanted) Remove(Victim());
  for (uint32_t b = from; b < names.size(); ++b) {
    auto block = std::make_shared<NaiveBlock>();
    block->name = names[b];
    block->parent = b == 0 ? nullptr : path->blocks.back().get();
    if (block->parent != nullptr) ++block->parent->children;
    block->depth = b;
    block->writer = writer;
    block->filler = path;
    block->pins = 1;
    block->committed.assign(shards_, false);
    block->holds.assign(shards_, 0);
    block->pages.assign(shards_, kNoPage);
    blocks_[names[b]] = block;
    path->blocks.push_back(block);
  }
  path->from = from;
  Touch(*path);
  paths_.push_back(path);
  *result = path;
  return ReserveStatus::kOk;
}

void NaiveCache::RemoveBelow(const BlockPtr& top) {
  std::vector<BlockPtr> gone;
  for (const auto& [name, block] : blocks_) {
    for (const NaiveBlock* up = block.get(); up != nullptr; up = up->parent) {
      if (up == top.get()) {
        gone.push_back(block);
        break;
      }
    }
  }
  std::sort(gone.begin(), gone.end(),
            [](const BlockPtr& a, const BlockPtr& b) { return a->depth > b->depth; });
  for (const BlockPtr& block : gone) Remove(block);
}

// Incomplete blocks that nobody can finish go, with all below them: paths that ended there lose
// their protection.
void NaiveCache::RemoveUnfinished() {
  for (bool again = true; again;) {
    again = false;
    for (const auto& [name, block] : blocks_) {
      const std::shared_ptr<NaivePath> filler = block->filler.lock();
      if (block->Complete() || (filler != nullptr && filler->alive)) continue;
      const BlockPtr gone = block;
      RemoveBelow(gone);
      for (const std::shared_ptr<NaivePath>& path : std::vector(paths_)) {
        if (!path->blocks.empty() && !path->blocks.back()->alive) Unregister(path);
      }
      again = true;
      break;
    }
  }
}

void NaiveCache::Drop(const BlockPtr& block, const std::set<const NaivePath*>& survivors) {
  RemoveBelow(block);
  for (const std::shared_ptr<NaivePath>& path : std::vector(paths_)) {
    if (path->blocks.empty() || path->blocks.back()->alive) continue;
    if (survivors.count(path.get()) == 0) {
      Unregister(path);
    } else {
      while (!path->blocks.back()->alive) path->blocks.pop_back();
    }
  }
  RemoveUnfinished();
}

void NaiveCache::Finish(const std::shared_ptr<NaivePath>& path) {
  if (!path->alive) return;
  Unregister(path);
  RemoveUnfinished();
  Touch(*path);
}

bool NaiveCache::Hold(const NaivePath& path, uint32_t from, uint32_t to, uint32_t shard) {
  if (!path.alive || to > path.blocks.size()) return false;
  for (uint32_t b = from; b < to; ++b) ++path.blocks[b]->holds[shard];
  return true;
}

bool NaiveCache::Commit(const NaivePath& path, uint32_t block, uint32_t shard) {
  if (!path.alive || block >= path.blocks.size()) return false;
  if (path.blocks[block]->committed[shard]) return false;
  path.blocks[block]->committed[shard] = true;
  return true;
}

void NaiveCache::Release(const BlockPtr& block, uint32_t shard) {
  if (--block->holds[shard] == 0 && !block->alive) --quarantined_;
}

uint32_t NaiveCache::Evict(uint32_t blocks) {
  uint32_t gone = 0;
  while (gone < blocks) {
    const BlockPtr victim = Victim();
    if (victim == nullptr) break;
    Remove(victim);
    ++gone;
  }
  return gone;
}

uint64_t NaiveCache::Visible() const {
  uint64_t visible = 0;
  for (const auto& [name, block] : blocks_) {
    const NaiveBlock* above = block.get();
    while (above != nullptr && above->Complete()) above = above->parent;
    visible += above == nullptr ? 1 : 0;
  }
  return visible;
}

PageCounts NaiveCache::Counts() const {
  PageCounts counts;
  for (const auto& [name, block] : blocks_) {
    for (uint32_t s = 0; s < shards_; ++s) {
      const bool held = block->holds[s] > 0;
      uint64_t& count = block->committed[s] ? (held ? counts.held : counts.committed)
                                            : (held ? counts.receiving : counts.reserved);
      ++count;
    }
  }
  counts.quarantined = quarantined_;
  counts.free = owned_ * extent_pages_ - blocks_.size() * shards_ - quarantined_;
  return counts;
}

}  // namespace pando::model
