// Cache: reservations. Everything that can fail is done before anything can be seen.
#include <algorithm>

#include "radix/base/check.h"
#include "radix/cache/cache.h"

namespace pando {

// Pages that evicting everything but the plan's path would free.
uint64_t Cache::Evictable(const Plan& plan) const {
  const uint32_t space = plan.space.value();
  const uint32_t shards = tree_.space(space).shape.shards;
  const uint64_t blocks = tree_.space(space).blocks - spaces_[space].protected_blocks;
  uint64_t path = 0, path_loose = 0;
  uint32_t blocks_here = plan.at;
  for (uint32_t id = plan.parent; !tree_.run(id).is_root();) {
    const Run& run = tree_.run(id);
    if (run.pins > 0) break;  // so is all above
    path += blocks_here;
    if (pages_.loose(plan.space) > 0) {
      const uint32_t* page = run.pages(tree_.shape(run), 0);
      for (uint64_t i = 0; i < uint64_t{blocks_here} * shards; ++i) {
        if (pages_.entry(PageId(page[i])).loose) ++path_loose;
      }
    }
    id = run.parent;
    blocks_here = tree_.run(id).blocks;
  }
  return (blocks - path) * shards - (pages_.loose(plan.space) - path_loose);
}

// Whether the pages can be had, and how many extents to take for it: free pages first, then
// extents, then what is cached.
ReserveStatus Cache::Fit(Plan* plan) const {
  const uint64_t free = pages_.free_pages(plan->space);
  if (plan->pages <= free) return ReserveStatus::kOk;
  const uint64_t missing = plan->pages - free;
  const uint64_t each = pages_.pages_per_extent(plan->space);
  plan->extents = std::min(pages_.Takeable(plan->space), (missing + each - 1) / each);
  if (plan->extents * each >= missing) return ReserveStatus::kOk;
  return missing - plan->extents * each <= Evictable(*plan) ? ReserveStatus::kOk
                                                            : ReserveStatus::kFull;
}

bool Cache::TakeExtents(const Plan& plan) {
  for (uint64_t taken = 0; taken < plan.extents; ++taken) {
    if (pages_.Take(plan.space)) continue;
    pages_.Untake(plan.space, taken);
    return false;
  }
  return true;
}

// 1. what is there already          4. memory for all that is new; any failure undoes it all
// 2. whether the pages can be had   5. the path is pinned, room is made, the blocks get pages
// 3. the place                      6. new runs are linked, the whole chain is used now
Reservation Cache::Reserve(SpaceId space, const Prompt& prompt, BlockCount to, uint64_t writer,
                           BlockCount most) {
  // 1.
  const BlockShape form = tree_.space(space.value()).shape;
  const auto whole = static_cast<uint32_t>(prompt.tokens.size() / form.tokens);
  uint32_t end = std::min(to.value(), whole);
  const Tree::Walked walked = tree_.Walk(space.value(), prompt, end, &writer);
  Reservation result{.status = ReserveStatus::kNothing,
                     .path = {},
                     .from = BlockCount(walked.blocks),
                     .to = BlockCount(walked.blocks)};
  if (walked.stop == Stop::kInFlight) result.status = ReserveStatus::kInFlight;
  if (walked.stop == Stop::kInFlight || walked.blocks == end || most == BlockCount(0))
    return result;
  end = walked.blocks + std::min(end - walked.blocks, most.value());
  // 2.
  Plan plan{.space = space,
            .parent = walked.run,
            .at = walked.run_blocks,
            .from = walked.blocks,
            .to = end,
            .pages = uint64_t{end - walked.blocks} * form.shards,
            .extents = 0};
  result.status = Fit(&plan);
  if (result.status != ReserveStatus::kOk) return result;
  // 3., 4.
  result.status = ReserveStatus::kNoMemory;
  const std::optional<Tree::Chain> chain =
      tree_.Prepare(plan.parent, plan.at, prompt, plan.from, plan.to, writer);
  if (!chain) return result;
  const bool room = policy_->MakeRoom(tree_.ids()) && TakeExtents(plan);
  uint32_t parent = plan.parent;
  if (room && plan.at < tree_.run(parent).blocks) parent = SplitRun(parent, plan.at);
  if (!room || parent == kNoNode) {
    if (room) pages_.Untake(space, plan.extents);
    tree_.Abandon(*chain);
    return result;
  }
  // 5., 6.
  Insert(*chain, parent, plan);
  result.status = ReserveStatus::kOk;
  result.path = PathTo(chain->bottom);
  result.to = BlockCount(end);
  return result;
}

void Cache::Insert(Tree::Chain chain, uint32_t parent, const Plan& plan) {
  if (!tree_.run(parent).is_root()) PinPath(parent);
  const uint64_t free = pages_.free_pages(plan.space);
  uint64_t freed = 0;
  while (free + freed < plan.pages) {
    const std::optional<RunId> victim = policy_->Victim(plan.space);
    PANDO_CHECK(victim.has_value()) << "evictable pages miscounted: " << plan.pages << " wanted, "
                                    << free << " free, " << freed << " freed";
    EvictTail(victim->value(), kRunBlocksMax, plan.pages - free - freed, &freed);
  }
  tree_.Link(chain, parent);
  const UseFacts use{.now = now_, .fresh = BlockCount(plan.to - plan.from)};
  // The pin moves to the end of the chain.
  if (!tree_.run(parent).is_root()) --tree_.run(parent).pins_own;
  ++tree_.run(chain.bottom).pins_own;
  for (uint32_t id = chain.bottom; id != parent; id = tree_.run(id).parent) {
    Run& run = tree_.run(id);
    const BlockShape form = tree_.shape(run);
    uint32_t* page = run.pages(form, 0);
    for (uint64_t i = 0; i < uint64_t{run.blocks} * form.shards; ++i) {
      page[i] = pages_.Reserve(plan.space).value();
    }
    run.pins = 1;
    spaces_[run.space].protected_blocks += run.blocks;
    policy_->Insert(FactsOf(id), use);
  }
  TouchPath(parent, plan.to - plan.from);
}

// Blocks from the first incomplete one on are cut; then the path is let go as Unpin does.
void Cache::Finish(const Reservation& reservation) {
  const PathRef path = reservation.path;
  if (reservation.status != ReserveStatus::kOk || !Alive(path)) return;
  uint32_t highest = kNoNode;
  for (uint32_t id = path.run.value(); tree_.run(id).end() > reservation.from.value();) {
    if (!tree_.run(id).is_complete()) highest = id;
    id = tree_.run(id).parent;
  }
  uint32_t above = kNoNode;  // what is left of the chain, if its end goes
  if (highest != kNoNode) {
    const uint32_t at = tree_.run(highest).complete;
    above = at > 0 ? highest : tree_.run(highest).parent;
    Cut(highest, at);
  }
  if (Alive(path)) {
    Unpin(path);
  } else if (above != kNoNode && tree_.run(above).live) {
    TouchPath(above, 0);
    JoinPath(above);
  }
}

}  // namespace pando
