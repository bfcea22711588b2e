// Cache: the recount behind CheckInvariants.
#include "radix/cache/cache.h"

namespace pando {

// Every page of an extent belongs to one block or to none, as its state says.
std::string Cache::CheckPages() const {
  std::string broken = pages_.Check();
  if (!broken.empty()) return broken;
  std::vector<uint64_t> owned(spaces_.size());
  std::vector<bool> seen;
  for (uint32_t id = 0; id < tree_.ids(); ++id) {
    const Run& run = tree_.run(id);
    if (!run.live || run.is_root()) continue;
    const BlockShape form = tree_.shape(run);
    const uint32_t* page = run.pages(form, 0);
    const uint64_t count = uint64_t{run.blocks} * form.shards;
    owned[run.space] += count;
    for (uint64_t i = 0; i < count; ++i) {
      if (page[i] >= seen.size()) seen.resize(page[i] + 1);
      if (seen[page[i]]) return "page " + std::to_string(page[i]) + " belongs to two blocks";
      seen[page[i]] = true;
      const PageState state = pages_.entry(PageId(page[i])).state;
      if (state == PageState::kFree || state == PageState::kQuarantined) {
        return "page " + std::to_string(page[i]) + " of a block is free or quarantined";
      }
    }
  }
  for (uint32_t s = 0; s < spaces(); ++s) {
    uint64_t used = 0;
    for (const PageState state :
         {PageState::kReserved, PageState::kReceiving, PageState::kCommitted, PageState::kHeld}) {
      used += pages_.Count(SpaceId(s), state);
    }
    if (used != owned[s]) return "space " + std::to_string(s) + ": a page in use has no block";
  }
  return "";
}

std::string Cache::CheckRunState(uint32_t id) const {
  const Run& run = tree_.run(id);
  const std::string name = "run " + std::to_string(id) + ": ";
  uint64_t pins = run.pins_own;
  for (uint32_t c = run.first_child; c != kNoNode; c = tree_.next_sibling(c)) {
    pins += tree_.run(c).pins;
  }
  if (pins != run.pins) return name + "pins miscounted";
  if (!run.is_complete() && (run.pins == 0 || !tree_.HasFiller(run))) {
    return name + "incomplete, and nobody fills it";
  }
  uint32_t complete = 0;
  while (complete < run.blocks && BlockComplete(run, complete)) ++complete;
  if (complete != run.complete) return name + "complete blocks miscounted";
  const bool candidate = run.children == 0 && run.pins == 0;
  if (policy_->IsCandidate(RunId(id)) != candidate) return name + "wrongly a candidate, or not";
  const BlockShape form = tree_.shape(run);
  const uint32_t* page = run.pages(form, 0);
  for (uint64_t i = 0; i < uint64_t{run.blocks} * form.shards; ++i) {
    const PageEntry& entry = pages_.entry(PageId(page[i]));
    if (entry.loose != (run.pins == 0 && entry.state == PageState::kHeld)) {
      return name + "page " + std::to_string(page[i]) + " is wrongly loose, or not";
    }
  }
  return "";
}

std::string Cache::CheckPins() const {
  std::vector<uint64_t> pinned(spaces_.size());
  for (uint32_t id = 0; id < tree_.ids(); ++id) {
    const Run& run = tree_.run(id);
    if (!run.live || run.is_root()) continue;
    if (run.pins > 0) pinned[run.space] += run.blocks;
    std::string broken = CheckRunState(id);
    if (!broken.empty()) return broken;
  }
  for (uint32_t s = 0; s < spaces(); ++s) {
    if (pinned[s] != spaces_[s].protected_blocks) {
      return "space " + std::to_string(s) + ": protected blocks miscounted";
    }
  }
  return "";
}

// What is told can be found, and under its own key.
std::string Cache::CheckTold() const {
  for (uint32_t id = 0; id < tree_.ids(); ++id) {
    const Run& run = tree_.run(id);
    if (!run.live || run.is_root()) continue;
    for (uint32_t block = 0; block < run.blocks; ++block) {
      const uint64_t key = told_.Get(FirstPage(run, block));
      if (key == 0) continue;
      uint64_t above = 0;
      if (block >= run.complete || !ToldAbove(run, block, &above)) {
        return "run " + std::to_string(id) + ": a block is told that cannot be found";
      }
      if (key != tree_.KeyAt(run, block + 1).low) {
        return "run " + std::to_string(id) + ": a block is told under another key";
      }
    }
  }
  return "";
}

std::string Cache::CheckInvariants() const {
  std::string broken = tree_.Check();
  if (broken.empty()) broken = CheckPages();
  if (broken.empty()) broken = CheckPins();
  if (broken.empty()) broken = policy_->Check();
  if (broken.empty() && listener_ != nullptr) broken = CheckTold();
  return broken;
}

}  // namespace pando
