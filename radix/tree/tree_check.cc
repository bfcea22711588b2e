// Tree: the recount behind CheckInvariants.
#include "radix/tree/tree.h"

namespace pando {

std::string Tree::CheckRunKeys(const Run& run, const std::string& name) const {
  const BlockShape form = shape(run);
  if (run.has_end_key) {
    Run fresh = run;
    fresh.has_end_key = false;
    if (!run.is_root() && !(KeyAt(fresh, run.blocks) == run.end_key)) return name + "wrong end key";
  } else if (run.children > 0) {
    return name + "has children and no end key";
  }
  if (run.is_root()) return "";
  const Run& above = runs_[run.parent];
  if (above.scope == run.scope && !above.is_root()) {
    const BlockKey key = keys_.Block(above.end_key, {run.words, form.tokens}, ExtraOf(run, 0));
    if (!(key == run.first_key)) return name + "wrong first key";
  }
  return "";
}

std::string Tree::CheckRun(uint32_t id) const {
  const Run& run = runs_[id];
  const std::string name = "run " + std::to_string(id) + ": ";
  if (run.complete > run.blocks) return name + "more complete blocks than blocks";
  uint32_t children = 0, before = kNoNode;
  for (uint32_t c = run.first_child; c != kNoNode; c = siblings_[c].next) {
    const Run& child = runs_[c];
    if (!child.live || child.parent != id || siblings_[c].previous != before) {
      return name + "a child's links are wrong";
    }
    if (child.depth != run.end() || child.space != run.space)
      return name + "a child lies elsewhere";
    // Of two that begin alike, only one can be found.
    if (FindChild(id, child.first_key, child.scope, child.words, ExtraOf(child, 0)) != c) {
      return name + "two children begin alike, or one is not in the index";
    }
    before = c;
    if (++children > run.children) break;
  }
  if (children != run.children) return name + "children miscounted";
  if (run.is_root()) {
    return run.blocks == 0 && spaces_[run.space].root == id ? "" : name + "a false root";
  }
  if (run.blocks == 0 || run.blocks > kRunBlocksMax || run.blocks > run.capacity) {
    return name + std::to_string(run.blocks) + " blocks";
  }
  if (run.scope == kNoNode || scopes_.refs(run.scope) == 0) return name + "no scope";
  return CheckRunKeys(run, name);
}

std::string Tree::Check() const {
  uint64_t live = 0, words = 0;
  std::vector<uint64_t> runs(spaces_.size()), blocks(spaces_.size());
  std::vector<uint32_t> scope_refs(scopes_.ids()), extra_refs(extras_.ids());
  scope_refs[0] = 1;
  for (uint32_t id = 0; id < used_; ++id) {
    const Run& run = runs_[id];
    if (!run.live) continue;
    ++live;
    std::string broken = CheckRun(id);
    if (!broken.empty()) return broken;
    if (run.is_root()) continue;
    ++runs[run.space];
    blocks[run.space] += run.blocks;
    words += shape(run).Words(run.capacity, run.has_extras);
    ++scope_refs[run.scope];
    for (uint32_t b = 0; run.has_extras && b < run.blocks; ++b) {
      const uint32_t extra = *run.extras(shape(run), b);
      if (extra != kNoNode) ++extra_refs[extra];
    }
  }
  if (live != live_ || words != words_) return "tree: runs or memory miscounted";
  if (index_.size() + spaces_.size() != live) return "tree: index miscounted";
  for (uint32_t s = 0; s < spaces_.size(); ++s) {
    if (runs[s] != spaces_[s].runs || blocks[s] != spaces_[s].blocks) {
      return "tree: runs or blocks of space " + std::to_string(s) + " miscounted";
    }
  }
  for (uint32_t id = 0; id < scopes_.ids(); ++id) {
    if (scopes_.refs(id) > 0 && scopes_.parent(id) != kNoNode) ++scope_refs[scopes_.parent(id)];
  }
  for (uint32_t id = 0; id < scopes_.ids(); ++id) {
    if (scopes_.refs(id) != scope_refs[id]) return "tree: a scope's references are miscounted";
  }
  for (uint32_t id = 0; id < extras_.ids(); ++id) {
    if (extras_.refs(id) != extra_refs[id]) return "tree: an extra's references are miscounted";
  }
  return "";
}

}  // namespace pando
