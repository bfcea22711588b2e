// Cache: spaces, paths and their pins, eviction.
#include "radix/cache/cache.h"

#include <algorithm>
#include <array>
#include <new>

#include "radix/base/check.h"
#include "radix/evict/lru.h"

namespace pando {
namespace {

constexpr uint32_t kAhead = 8;  // page entries that are loaded before they are needed

}  // namespace

Cache::Cache(const PrefixCache::Options& options)
    : tree_({.key_secret = options.key_secret, .collide = options.collide}),
      pages_({.space_share = options.space_share,
              .extent_pages_max = options.extent_pages_max,
              .ops = options.page_ops}),
      policy_(std::make_unique<LruPolicy>()) {}

std::optional<SpaceId> Cache::AddSpace(const SpaceShape& shape) {
  // Each of the three counts spaces by itself: all that can fail comes first, and a half-added
  // space of the page table or the policy is used by the next try.
  const SpaceId id(spaces());
  try {
    Space space;
    space.shape = shape;
    spaces_.reserve(spaces_.size() + 1);
    if (!policy_->MakeRoom(tree_.ids() + 1)) return std::nullopt;
    if (!pages_.EnsureSpace(id, shape.page_bytes) || !policy_->EnsureSpace(id)) return std::nullopt;
    if (!tree_.AddSpace(shape.identity, {shape.block_tokens, shape.shards})) return std::nullopt;
    spaces_.push_back(std::move(space));
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
  return id;
}

Match Cache::Find(SpaceId space, const Prompt& prompt, BlockCount limit) const {
  const Tree::Walked walked = tree_.Walk(space.value(), prompt, limit.value(), nullptr);
  return {.space = space,
          .blocks = BlockCount(walked.blocks),
          .run = RunId(walked.run),
          .run_blocks = BlockCount(walked.run_blocks),
          .stop = walked.stop,
          .writer = walked.writer,
          .runs_visited = walked.runs_visited};
}

void Cache::AppendKeys(const Match& match, const Prompt& prompt, BlockCount to,
                       std::vector<uint64_t>* lows) const {
  const Tree::Walked walked{.run = match.run.value(),
                            .run_blocks = match.run_blocks.value(),
                            .blocks = match.blocks.value()};
  tree_.AppendKeys(match.space.value(), prompt, walked, to.value(), lows);
}

// ---- Paths

PathRef Cache::PathTo(uint32_t id) const {
  const Run& run = tree_.run(id);
  return {RunId(id), Generation(run.generation), BlockCount(run.end())};
}

bool Cache::Alive(PathRef path) const {
  if (path.run.value() >= tree_.ids()) return false;
  const Run& run = tree_.run(path.run.value());
  return run.live && run.generation == path.generation.value();
}

Cache::Place Cache::Locate(PathRef path, uint32_t block) const {
  uint32_t id = path.run.value();
  if (block >= tree_.run(id).end()) return {};
  if (near_.version == tree_.version() && near_.end == id && block < tree_.run(near_.run).end()) {
    id = near_.run;
  }
  while (block < tree_.run(id).depth) id = tree_.run(id).parent;
  near_ = {.version = tree_.version(), .end = path.run.value(), .run = id};
  return {id, block - tree_.run(id).depth};
}

RunFacts Cache::FactsOf(uint32_t id) const {
  const Run& run = tree_.run(id);
  return {RunId(id), SpaceId(run.space), BlockCount(run.depth), BlockCount(run.blocks)};
}

void Cache::UpdateCandidate(uint32_t id) {
  const Run& run = tree_.run(id);
  if (run.is_root()) return;
  const bool candidate = run.children == 0 && run.pins == 0;
  if (policy_->IsCandidate(RunId(id)) != candidate) policy_->SetCandidate(RunId(id), candidate);
}

// A run gains its first pin or loses its last.
void Cache::SetProtected(Run* run, bool is_protected) {
  const SpaceId space(run->space);
  uint64_t& blocks = spaces_[space.value()].protected_blocks;
  blocks = is_protected ? blocks + run->blocks : blocks - run->blocks;
  const uint64_t any = is_protected ? pages_.loose(space) : pages_.Count(space, PageState::kHeld);
  if (any == 0) return;
  const BlockShape form = tree_.shape(*run);
  const uint32_t* page = run->pages(form, 0);
  for (uint64_t i = 0; i < uint64_t{run->blocks} * form.shards; ++i) {
    pages_.SetLoose(PageId(page[i]), !is_protected);
  }
}

void Cache::PinPath(uint32_t end) {
  ++tree_.run(end).pins_own;
  for (uint32_t id = end; !tree_.run(id).is_root(); id = tree_.run(id).parent) {
    Run& run = tree_.run(id);
    if (run.pins++ == 0) SetProtected(&run, true);
  }
  UpdateCandidate(end);
}

void Cache::UnpinPath(uint32_t end) {
  PANDO_CHECK(tree_.run(end).pins_own > 0) << "run " << end << " has no pin";
  --tree_.run(end).pins_own;
  for (uint32_t id = end; !tree_.run(id).is_root(); id = tree_.run(id).parent) {
    Run& run = tree_.run(id);
    if (--run.pins == 0) SetProtected(&run, false);
  }
  UpdateCandidate(end);
}

// Tail first, so that the root is the most recent.
void Cache::TouchPath(uint32_t end, uint32_t fresh) {
  const UseFacts use{.now = now_, .fresh = BlockCount(fresh)};
  for (uint32_t id = end; !tree_.run(id).is_root(); id = tree_.run(id).parent) {
    policy_->Touch(FactsOf(id), use);
  }
}

// Runs of a path that has just been touched have one age, so those that nobody names become one: a
// chain that grew block by block costs no more than one that came at once.
void Cache::JoinPath(uint32_t end) {
  uint32_t id = end;
  while (!tree_.run(id).is_root()) {
    const uint32_t parent = tree_.run(id).parent;
    const bool free = tree_.run(id).pins == 0 && tree_.run(parent).pins == 0;
    const RunFacts upper = FactsOf(parent);
    if (free && tree_.CanMerge(id) && tree_.Merge(id)) {
      policy_->Merge(upper, FactsOf(id));
      continue;  // `id` now begins higher
    }
    id = parent;
  }
}

uint32_t Cache::SplitRun(uint32_t id, uint32_t at) {
  if (!policy_->MakeRoom(tree_.ids() + 1)) return kNoNode;
  const Run& run = tree_.run(id);
  uint32_t complete = run.complete > at ? run.complete - at : 0;
  if (complete == 0) {
    while (at + complete < run.blocks && BlockComplete(run, at + complete)) ++complete;
  }
  const uint32_t upper = tree_.Split(id, at, complete);
  if (upper == kNoNode) return kNoNode;
  policy_->Split(FactsOf(upper), FactsOf(id));
  return upper;
}

std::optional<PathRef> Cache::Pin(const Match& match) {
  uint32_t end = match.run.value();
  if (match.blocks.value() == 0) return PathTo(tree_.space(match.space.value()).root);
  if (match.run_blocks.value() < tree_.run(end).blocks) {
    end = SplitRun(end, match.run_blocks.value());
    if (end == kNoNode) return std::nullopt;
  }
  PinPath(end);
  TouchPath(end, 0);
  return PathTo(end);
}

void Cache::Unpin(PathRef path) {
  if (path.blocks.value() == 0 || !Alive(path)) return;
  const uint32_t end = path.run.value();
  UnpinPath(end);
  TouchPath(end, 0);
  JoinPath(end);
}

// ---- Eviction

// Takes pages from the blocks; returns how many are free now.
uint64_t Cache::DetachBlocks(const Run& run, uint32_t from, uint32_t to) {
  TellGone(run, from, to);
  const BlockShape form = tree_.shape(run);
  const uint32_t* page = run.pages(form, from);
  uint64_t freed = 0;
  for (uint64_t i = 0; i < uint64_t{to - from} * form.shards; ++i) {
    if (pages_.Detach(PageId(page[i]))) ++freed;
  }
  return freed;
}

// A run without children, its pages detached, goes. Its parent may be a candidate now.
void Cache::RemoveRun(uint32_t id) {
  const uint32_t parent = tree_.run(id).parent;
  policy_->Remove(FactsOf(id));
  tree_.Remove(id);
  UpdateCandidate(parent);
}

// An eviction in order of age touches memory in no order at all, so what the next victims need is
// loaded while this one goes: each a step further than the last time.
void Cache::LoadAhead(SpaceId space) const {
  std::array<RunId, 6> next;
  const size_t count = policy_->Upcoming(space, next);
  if (count > 5) tree_.PrefetchRun(next[5].value());
  if (count > 3) tree_.PrefetchNeighbours(next[3].value());
  if (count < 2) return;
  const Run& run = tree_.run(next[1].value());
  const BlockShape form = tree_.shape(run);
  for (uint32_t i = 0; i < std::min(kAhead, run.blocks); ++i) {
    pages_.Prefetch(PageId(*run.pages(form, run.blocks - 1 - i)));
  }
  tree_.PrefetchChain(next[1].value());
}

// Evicts blocks from the candidate's tail until `pages_wanted` pages are free or `blocks_max`
// blocks went. Returns the blocks; adds the freed pages.
uint64_t Cache::EvictTail(uint32_t id, uint64_t blocks_max, uint64_t pages_wanted,
                          uint64_t* pages) {
  const Run& run = tree_.run(id);
  PANDO_CHECK(run.children == 0 && run.pins == 0 && run.is_complete()) << "run " << id;
  LoadAhead(SpaceId(run.space));
  const BlockShape form = tree_.shape(run);
  uint32_t left = run.blocks;
  const uint64_t target = *pages + pages_wanted;
  while (left > 0 && run.blocks - left < blocks_max && *pages < target) {
    --left;
    if (left >= kAhead) pages_.Prefetch(PageId(*run.pages(form, left - kAhead)));
    *pages += DetachBlocks(run, left, left + 1);
  }
  const uint64_t gone = run.blocks - left;
  spaces_[run.space].evicted_blocks += gone;
  if (left == 0) {
    RemoveRun(id);
  } else {
    tree_.CutTail(id, left);
    policy_->Cut(FactsOf(id));
  }
  return gone;
}

BlockCount Cache::Evict(SpaceId space, BlockCount blocks) {
  uint64_t gone = 0, pages = 0;
  while (gone < blocks.value()) {
    const std::optional<RunId> victim = policy_->Victim(space);
    if (!victim) break;
    gone += EvictTail(victim->value(), blocks.value() - gone, UINT64_MAX / 2, &pages);
  }
  return BlockCount(static_cast<uint32_t>(gone));
}

// ---- Reads

SpaceStats Cache::stats(SpaceId id) const {
  const Space& space = spaces_[id.value()];
  const Tree::Space& tree = tree_.space(id.value());
  return {.pages = {.free = pages_.Count(id, PageState::kFree),
                    .reserved = pages_.Count(id, PageState::kReserved),
                    .receiving = pages_.Count(id, PageState::kReceiving),
                    .committed = pages_.Count(id, PageState::kCommitted),
                    .held = pages_.Count(id, PageState::kHeld),
                    .quarantined = pages_.Count(id, PageState::kQuarantined)},
          .extents = pages_.extents_owned(id),
          .runs = tree.runs,
          .blocks = tree.blocks,
          .evicted_blocks = space.evicted_blocks,
          .dropped_blocks = space.dropped_blocks};
}

void Cache::VisitRuns(SpaceId space, uint64_t limit,
                      const std::function<void(const RunInfo&)>& visit) const {
  const uint32_t root = tree_.space(space.value()).root;
  uint32_t id = tree_.run(root).first_child;
  while (id != kNoNode && limit > 0) {
    const Run& run = tree_.run(id);
    const uint64_t told = run.complete == 0 ? 0 : told_.Get(FirstPage(run, run.complete - 1));
    visit({.run = RunId(id),
           .parent = RunId(run.parent == root ? id : run.parent),
           .depth_blocks = run.depth,
           .blocks = run.blocks,
           .complete_blocks = run.complete,
           .children = run.children,
           .pins = run.pins,
           .scope = tree_.ScopePath(run.scope),
           .told_key = told == 0 ? std::nullopt : std::optional(told)});
    --limit;
    if (run.first_child != kNoNode) {
      id = run.first_child;
      continue;
    }
    while (id != root && tree_.next_sibling(id) == kNoNode) id = tree_.run(id).parent;
    id = id == root ? kNoNode : tree_.next_sibling(id);
  }
}

Bytes Cache::memory() const {
  return Bytes(tree_.memory() + pages_.memory().value() + policy_->memory().value() +
               told_.bytes() + spaces_.capacity() * sizeof(Space) + sizeof(Cache));
}

}  // namespace pando
