#include "radix/evict/lru.h"

#include <new>

#include "radix/base/check.h"

namespace pando {

bool LruPolicy::EnsureSpace(SpaceId space) {
  if (space.value() < lists_.size()) return true;
  try {
    lists_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void LruPolicy::PushNewest(uint32_t run) {
  Node& node = nodes_[run];
  List& list = lists_[node.space];
  node.older = list.newest;
  node.newer = kNone;
  (list.newest == kNone ? list.oldest : nodes_[list.newest].newer) = run;
  list.newest = run;
  node.listed = 1;
  node.used = ++uses_;
}

void LruPolicy::PutBack(uint32_t run) {
  Node& node = nodes_[run];
  List& list = lists_[node.space];
  node.older = kNone;
  node.newer = list.oldest;
  while (node.newer != kNone && nodes_[node.newer].used < node.used) {
    node.older = node.newer;
    node.newer = nodes_[node.newer].newer;
  }
  (node.older == kNone ? list.oldest : nodes_[node.older].newer) = run;
  (node.newer == kNone ? list.newest : nodes_[node.newer].older) = run;
  node.listed = 1;
}

void LruPolicy::Unlink(uint32_t run) {
  Node& node = nodes_[run];
  List& list = lists_[node.space];
  (node.older == kNone ? list.oldest : nodes_[node.older].newer) = node.newer;
  (node.newer == kNone ? list.newest : nodes_[node.newer].older) = node.older;
  node.listed = 0;
}

void LruPolicy::Insert(const RunFacts& run, const UseFacts&) {
  Node& node = nodes_[run.run.value()];
  PANDO_CHECK(!node.known) << "run " << run.run << " is there already";
  node = Node{};
  node.space = run.space.value() & 0x1fffffff;
  node.known = 1;
  PushNewest(run.run.value());
}

void LruPolicy::Touch(const RunFacts& run, const UseFacts&) {
  const uint32_t id = run.run.value();
  if (nodes_[id].listed) Unlink(id);
  PushNewest(id);
}

void LruPolicy::Split(const RunFacts& upper, const RunFacts& lower) {
  const uint32_t low = lower.run.value(), up = upper.run.value();
  const Node& below = nodes_[low];
  Node& node = nodes_[up];
  node = Node{};
  node.space = below.space;
  node.known = 1;
  node.used = below.used;
  if (!below.listed) return;  // parked, so is the upper part: it has a child
  node.older = low;
  node.newer = below.newer;
  (below.newer == kNone ? lists_[node.space].newest : nodes_[below.newer].older) = up;
  nodes_[low].newer = up;
  node.listed = 1;
}

void LruPolicy::Merge(const RunFacts& upper, const RunFacts&) {
  Remove(upper);
}

void LruPolicy::Cut(const RunFacts&) {}

void LruPolicy::Remove(const RunFacts& run) {
  Node& node = nodes_[run.run.value()];
  PANDO_CHECK(node.known) << "run " << run.run << " is not there";
  if (node.listed) Unlink(run.run.value());
  node = Node{};
}

void LruPolicy::SetCandidate(RunId run, bool candidate) {
  Node& node = nodes_[run.value()];
  node.candidate = candidate ? 1 : 0;
  if (candidate && !node.listed) PutBack(run.value());
}

std::optional<RunId> LruPolicy::Victim(SpaceId space) {
  const List& list = lists_[space.value()];
  while (list.oldest != kNone) {
    const Node& node = nodes_[list.oldest];
    if (node.candidate) return RunId(list.oldest);
    Unlink(list.oldest);
  }
  return std::nullopt;
}

size_t LruPolicy::Upcoming(SpaceId space, std::span<RunId> runs) const {
  size_t count = 0;
  uint32_t run = lists_[space.value()].oldest;
  for (; run != kNone && count < runs.size(); run = nodes_[run].newer) runs[count++] = RunId(run);
  if (run != kNone) __builtin_prefetch(&nodes_[run]);
  return count;
}

Bytes LruPolicy::memory() const {
  return Bytes(nodes_.bytes() + lists_.capacity() * sizeof(List));
}

std::string LruPolicy::Check() const {
  uint64_t listed = 0, marked = 0;
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.listed && !node.known) return "lru: an unknown run is listed";
    if (node.candidate && !node.listed) return "lru: a candidate is parked";
    marked += node.listed;
  }
  for (uint32_t space = 0; space < lists_.size(); ++space) {
    uint32_t before = kNone;
    for (uint32_t id = lists_[space].oldest; id != kNone; id = nodes_[id].newer) {
      if (nodes_[id].older != before) return "lru: the list's links disagree";
      if (nodes_[id].space != space || !nodes_[id].listed) return "lru: a stranger in the list";
      before = id;
      if (++listed > marked) return "lru: the list has a loop";
    }
    if (lists_[space].newest != before) return "lru: the newest run is not the last";
  }
  return listed == marked ? "" : "lru: a run lost its place";
}

}  // namespace pando
