// Tree: which chains of blocks are there, and where their pages are. No page states, no policy.
//
//   space's root ─► run [a b c] ─┬─► run [d e]          children are found by the key of their
//   first
//     (no blocks)                └─► run [x]            block in one index over all runs
//
//   Split(run [a b c], 1):   ─► run' [a] ─► run [b c]   the lower part keeps the name
//   Merge(run [b c]):        ─► run [a b c]             the parent goes into its only child
//
// Invariants:
//  1. A run has 1 .. kRunBlocksMax blocks, all in one scope path; only the root of a space has
//     none.
//  2. No two children of a run begin with equal blocks (tokens, extra bytes, scope path).
//  3. Keys are computed when first needed: a run with children knows its end key.
//  4. Walk changes nothing. Split, Merge and Prepare happen whole or change nothing, and say so;
//     what cuts never fails. No recursion; a step over one run is bounded by kRunBlocksMax.
//
// A page number in a run's columns is opaque here. Threads: owner thread only.
#ifndef PANDO_RADIX_TREE_TREE_H_
#define PANDO_RADIX_TREE_TREE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "radix/key/block_key.h"
#include "radix/key/prompt.h"
#include "radix/pool/chunked_array.h"
#include "radix/pool/interner.h"
#include "radix/pool/linear_index.h"
#include "radix/pool/word_pool.h"
#include "radix/tree/prompt_reader.h"
#include "radix/tree/run.h"

namespace pando {

class Tree {
 public:
  struct Options {
    std::string key_secret;
    bool collide = false;
  };

  struct Space {
    std::string identity;
    BlockShape shape;
    uint32_t root = kNoNode;
    BlockKey public_key;  // key_0 in the public scope
    uint64_t runs = 0, blocks = 0;
  };

  // Where a walk ended: `run_blocks` blocks into `run`, `blocks` from the root.
  struct Walked {
    uint32_t run = kNoNode;
    uint32_t run_blocks = 0;
    uint32_t blocks = 0;
    Stop stop = Stop::kEnd;
    uint64_t writer = 0;  // with Stop::kInFlight: who writes the next block
    uint32_t runs_visited = 0;
  };

  // New runs that hang in the air, top to bottom, until Link.
  struct Chain {
    uint32_t top = kNoNode, bottom = kNoNode;
  };

  // Throws std::bad_alloc.
  explicit Tree(const Options& options);
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Spaces are numbered in order; at most 256. False: no memory.
  bool AddSpace(const std::string& identity, BlockShape shape);
  uint32_t spaces() const { return static_cast<uint32_t>(spaces_.size()); }
  const Space& space(uint32_t id) const { return spaces_[id]; }

  Run& run(uint32_t id) { return runs_[id]; }
  const Run& run(uint32_t id) const { return runs_[id]; }
  // Ids of runs are below this.
  uint64_t ids() const { return used_; }
  uint32_t next_sibling(uint32_t id) const { return siblings_[id].next; }
  BlockShape shape(const Run& run) const { return spaces_[run.space].shape; }
  // Whether the path that was reserved with the run's incomplete blocks is still there.
  bool HasFiller(const Run& run) const {
    return run.filler != kNoNode && runs_[run.filler].live &&
           runs_[run.filler].generation == run.filler_generation;
  }
  std::string_view scope_name(uint32_t scope) const { return scopes_.bytes(scope); }
  // The path's names, joined by '>'.
  std::string ScopePath(uint32_t scope) const;
  // Changes whenever a run is cut, split, merged or added.
  uint64_t version() const { return version_; }

  // The longest chain of `prompt`'s blocks, at most `limit`. Blocks that are not complete are
  // passed only if `writer` is the one who fills them (null: never).
  Walked Walk(uint32_t space, const Prompt& prompt, uint32_t limit, const uint64_t* writer) const;

  // Appends the low halves of the keys of the prompt's blocks from where the walk ended up to `to`.
  void AppendKeys(uint32_t space, const Prompt& prompt, const Walked& walked, uint32_t to,
                  std::vector<uint64_t>* lows) const;

  // The key of the run's block `at` - 1; of the root, nothing.
  BlockKey KeyAt(const Run& run, uint32_t at) const;
  // The key of its block `block` below the block with key `above`, in one section.
  BlockKey NextKey(const Run& run, uint32_t block, BlockKey above) const;

  // The new upper part gets the first `at` blocks of the run (0 < at < blocks); kNoNode: no memory.
  // `lower_complete` is the number of leading complete blocks of what remains.
  uint32_t Split(uint32_t run, uint32_t at, uint32_t lower_complete);
  // Whether Merge(run) is possible: the parent has no other child, both are in one scope, complete,
  // and not too long together.
  bool CanMerge(uint32_t run) const;
  // False: no memory.
  bool Merge(uint32_t run);

  // Runs for blocks [from, to) of `prompt`, which go below the first `at` blocks of `parent`.
  // nullopt: no memory.
  std::optional<Chain> Prepare(uint32_t parent, uint32_t at, const Prompt& prompt, uint32_t from,
                               uint32_t to, uint64_t writer);
  void Abandon(Chain chain);
  // `parent` must end where the chain begins.
  void Link(Chain chain, uint32_t parent);

  // Takes blocks from `blocks` (> 0) on from a run without children.
  void CutTail(uint32_t run, uint32_t blocks);
  // Takes a run without children out; its id is free, with another generation.
  void Remove(uint32_t run);

  // Start to load what Remove(run) will touch: the run itself; then, a while later, what it points
  // to.
  void PrefetchRun(uint32_t run) const;
  void PrefetchNeighbours(uint32_t run) const;
  void PrefetchChain(uint32_t run) const;

  uint64_t memory() const;
  // Recounts all but pages and pins. Empty, or the first broken invariant.
  std::string Check() const;

 private:
  using Runs = ChunkedArray<Run, 8>;
  struct Access {
    Runs* runs;
    uint32_t& next(uint32_t id) const { return (*runs)[id].index_next; }
    uint64_t hash(uint32_t id) const { return (*runs)[id].first_key.low; }
  };
  struct Columns {
    uint32_t* words = nullptr;
    uint32_t capacity = 0;
    bool has_extras = false;
  };
  struct Range {
    uint32_t from, to;
  };

  // Reading.
  BlockKey EnterKey(const Space& space, BlockKey above, const PromptReader& reader) const;
  uint32_t FindPath(uint32_t path, const PromptReader& reader) const;
  uint32_t FindChild(uint32_t parent, BlockKey key, uint32_t scope, const uint32_t* tokens,
                     std::string_view extra) const;
  uint32_t MatchRun(const Run& run, PromptReader* reader, uint32_t block, uint32_t limit) const;
  uint32_t MatchExtras(const Run& run, PromptReader* reader, uint32_t block, uint32_t count) const;
  std::string_view ExtraOf(const Run& run, uint32_t block) const;
  void KnowEndKey(Run* run);

  // Memory.
  uint32_t NewRun();
  void FreeRun(uint32_t id);
  bool NewColumns(BlockShape shape, uint32_t capacity, bool extras, Columns* columns);
  void FreeColumns(Run* run);
  void SetColumns(Run* run, const Columns& columns);
  void CopyColumns(const Run& from, Range blocks, Run* to, uint32_t at) const;
  bool ForgetExtras(Run* run, Range blocks);
  uint32_t InternPath(const PromptReader& reader);
  bool FillRun(Run* run, PromptReader* reader, Range blocks);

  // Links.
  void Adopt(uint32_t parent, uint32_t child);
  void Disown(uint32_t child);
  std::string CheckRun(uint32_t id) const;
  std::string CheckRunKeys(const Run& run, const std::string& name) const;

  const KeyChain keys_;
  Runs runs_;
  ChunkedArray<Siblings, 8> siblings_;
  LinearIndex<Access> index_;
  Interner scopes_;
  Interner extras_;
  std::vector<Space> spaces_;
  uint32_t used_ = 0;
  uint32_t free_ = kNoNode;
  uint64_t live_ = 0;
  WordPool columns_;
  uint64_t words_ = 0;  // in use for columns
  uint64_t version_ = 1;
};

}  // namespace pando

#endif  // PANDO_RADIX_TREE_TREE_H_
