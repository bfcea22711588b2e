// NaiveCache: what PrefixCache promises, block by block, with maps and loops instead of runs, keys
// and lists. It shares no code with radix/ but the plain types of its interface.
//
//   block   is named by all that makes it: tokens, extra bytes and scopes of the whole chain
//   path    the blocks it pins
//   LRU     of all blocks that may go, the one used longest ago; a chain is used tail first
//
// One thing it cannot know is where runs end, and a path through a dropped block lives on exactly
// if its last run keeps a block: Drop is told which paths do (PathRef in prefix_cache.h).
#ifndef PANDO_TESTS_MODEL_NAIVE_H_
#define PANDO_TESTS_MODEL_NAIVE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "radix/prefix_cache.h"

namespace pando::model {

struct NaivePath;

struct NaiveBlock {
  std::string name;
  NaiveBlock* parent = nullptr;
  uint32_t depth = 0;
  uint64_t used = 0;
  uint64_t writer = 0;
  std::weak_ptr<NaivePath> filler;  // the reservation's that may complete it
  uint32_t children = 0;
  uint32_t pins = 0;  // paths that contain it
  bool alive = true;
  std::vector<bool> committed;  // by shard
  std::vector<uint32_t> holds;  // by shard
  std::vector<PageRef> pages;   // by shard, as learnt from the first hold

  bool Complete() const {
    for (const bool c : committed) {
      if (!c) return false;
    }
    return true;
  }
};
using BlockPtr = std::shared_ptr<NaiveBlock>;

struct NaivePath {
  std::vector<BlockPtr> blocks;
  bool alive = true;
  uint32_t from = 0;  // of a reservation
};

class NaiveCache {
 public:
  NaiveCache(uint32_t block_tokens, uint32_t shards, uint64_t extents, uint64_t extent_pages)
      : block_tokens_(block_tokens),
        shards_(shards),
        extents_(extents),
        extent_pages_(extent_pages) {}

  struct Found {
    uint32_t blocks = 0;
    Stop stop = Stop::kEnd;
  };
  Found Find(const Prompt& prompt, uint32_t limit) const;
  std::shared_ptr<NaivePath> Pin(const Prompt& prompt, uint32_t blocks);
  void Unpin(const std::shared_ptr<NaivePath>& path);
  ReserveStatus Reserve(const Prompt& prompt, uint32_t to, uint64_t writer,
                        std::shared_ptr<NaivePath>* path);
  void Finish(const std::shared_ptr<NaivePath>& path);
  bool Hold(const NaivePath& path, uint32_t from, uint32_t to, uint32_t shard);
  bool Commit(const NaivePath& path, uint32_t block, uint32_t shard);
  void Release(const BlockPtr& block, uint32_t shard);
  // `survivors`: the paths through the block whose last run keeps a block.
  void Drop(const BlockPtr& block, const std::set<const NaivePath*>& survivors);
  uint32_t Evict(uint32_t blocks);

  PageCounts Counts() const;
  // Blocks that can be found: complete, and so are all above.
  uint64_t Visible() const;
  uint64_t size() const { return blocks_.size(); }
  const std::vector<std::shared_ptr<NaivePath>>& paths() const { return paths_; }

 private:
  std::vector<std::string> Names(const Prompt& prompt) const;
  void Touch(const NaivePath& path);
  void Remove(const BlockPtr& block);
  void RemoveBelow(const BlockPtr& block);
  void RemoveUnfinished();
  void Unregister(const std::shared_ptr<NaivePath>& path);
  BlockPtr Victim() const;
  uint64_t Evictable(const NaivePath& spared) const;
  uint32_t Freed(const NaiveBlock& block) const;

  const uint32_t block_tokens_, shards_;
  const uint64_t extents_, extent_pages_;
  uint64_t owned_ = 0;  // extents
  uint64_t clock_ = 0;
  uint64_t quarantined_ = 0;
  std::map<std::string, BlockPtr> blocks_;
  std::vector<std::shared_ptr<NaivePath>> paths_;
};

}  // namespace pando::model

#endif  // PANDO_TESTS_MODEL_NAIVE_H_
