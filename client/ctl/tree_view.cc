#include "client/ctl/tree_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "client/ctl/printable.h"
#include "client/ctl/table.h"

namespace pando::ctl {
namespace {

using nlohmann::json;

constexpr size_t kIndentMax = 60;  // deeper runs are not moved further to the right

// Children by parent, in the order of the answer. Runs whose parent was not sent (the answer was
// cut, or the tree changed in between) stand at the top.
struct Forest {
  std::vector<const v1::Run*> top;
  std::unordered_map<uint32_t, std::vector<const v1::Run*>> children;
};

Forest BuildForest(const v1::ListRunsResponse& tree) {
  Forest forest;
  std::unordered_map<uint32_t, const v1::Run*> sent;
  for (const v1::Run& run : tree.runs()) {
    if (run.parent() != run.run() && sent.contains(run.parent())) {
      forest.children[run.parent()].push_back(&run);
    } else {
      forest.top.push_back(&run);
    }
    sent.emplace(run.run(), &run);
  }
  return forest;
}

// "2 peers: b, c"; the node names the first few.
std::string HoldersText(const v1::Run& run) {
  std::string text = Counted(run.peers(), "peer", "peers") + ":";
  for (int i = 0; i < run.peer_names_size(); ++i) {
    text += (i == 0 ? " " : ", ") + Printable(run.peer_names(i));
  }
  return run.peers() > static_cast<uint32_t>(run.peer_names_size()) ? text + ", ..." : text;
}

std::string RunText(const v1::Run& run) {
  const uint32_t writing = run.blocks() - std::min(run.blocks(), run.complete_blocks());
  std::string text =
      fmt::format("{}..{}  {}", run.depth_blocks(), run.depth_blocks() + run.blocks(),
                  Counted(run.blocks(), "block", "blocks"));
  if (writing > 0) text += fmt::format(", {} of them being written", Thousands(writing));
  if (run.children() > 0) text += "  " + Counted(run.children(), "child", "children");
  if (run.pins() > 0) text += "  " + Counted(run.pins(), "pin", "pins");
  if (!run.scope().empty() && run.scope() != "public") text += "  scope " + Printable(run.scope());
  if (run.peers() > 0) text += "  also on " + HoldersText(run);
  return text;
}

// What is still to be printed; a stack of our own, since trees can be deep.
struct Pending {
  const v1::Run* run;
  std::string indent;
  bool last;
};

void PushAll(const std::vector<const v1::Run*>& runs, const std::string& indent,
             std::vector<Pending>* stack) {
  for (size_t i = runs.size(); i > 0; --i) {
    stack->push_back({runs[i - 1], indent, i == runs.size()});
  }
}

}  // namespace

json TreeJson(uint32_t space, const v1::ListRunsResponse& tree, bool peers) {
  json runs = json::array();
  for (const v1::Run& run : tree.runs()) {
    json& added = runs.emplace_back(json{{"run", run.run()},
                                         {"parent", run.parent()},
                                         {"depth_blocks", run.depth_blocks()},
                                         {"blocks", run.blocks()},
                                         {"complete_blocks", run.complete_blocks()},
                                         {"children", run.children()},
                                         {"pins", run.pins()},
                                         {"scope", run.scope()}});
    if (!peers) continue;
    added["peers"] = run.peers();
    added["peer_names"] =
        std::vector<std::string>(run.peer_names().begin(), run.peer_names().end());
  }
  return {{"space", space}, {"runs", runs}, {"truncated", tree.truncated()}};
}

std::string TreeText(uint32_t space, const v1::ListRunsResponse& tree) {
  if (tree.runs().empty()) return fmt::format("space {}: empty\n", space);
  std::string text = fmt::format("runs of space {}\n", space);
  Forest forest = BuildForest(tree);
  std::vector<Pending> stack;
  PushAll(forest.top, "", &stack);
  while (!stack.empty()) {
    const Pending next = std::move(stack.back());
    stack.pop_back();
    text += next.indent + (next.last ? "└─ " : "├─ ") + RunText(*next.run) + "\n";
    const std::string deeper = next.indent + (next.last ? "   " : "│  ");
    PushAll(forest.children[next.run->run()], deeper.size() <= kIndentMax ? deeper : next.indent,
            &stack);
  }
  if (tree.truncated()) text += "... and more: --limit shows more runs\n";
  return text;
}

}  // namespace pando::ctl
