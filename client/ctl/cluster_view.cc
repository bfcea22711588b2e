#include "client/ctl/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/ctl/account_view.h"
#include "client/ctl/printable.h"
#include "client/ctl/table.h"
#include "radix/base/units.h"

namespace pando::ctl {
namespace {

using nlohmann::json;

constexpr const char* kNoCluster =
    "the node is in no cluster: it was started without --peer-listen\n";

const char* StateName(v1::ClusterPeer::State state) {
  switch (state) {
    case v1::ClusterPeer::CONNECTED:
      return "connected";
    case v1::ClusterPeer::INCOMPATIBLE:
      return "incompatible";
    case v1::ClusterPeer::SELF:
      return "self";
    default:
      return "connecting";
  }
}

json PeerJson(const v1::ClusterPeer& peer) {
  const auto known = [](bool is, uint64_t value) { return is ? json(value) : json(); };
  return {{"name", peer.name()},
          {"address", peer.address()},
          {"boot_id", fmt::format("{:016x}", peer.boot_id())},
          {"state", StateName(peer.state())},
          {"why", peer.why()},
          {"view_complete", peer.view_complete()},
          {"blocks", peer.blocks()},
          {"prefilling", peer.prefilling()},
          {"heard_ago_ms", known(peer.has_heard_ago_ms(), peer.heard_ago_ms())},
          {"breaker",
           {{"open", peer.has_closed_for_ms()},
            {"for_ms", known(peer.has_closed_for_ms(), peer.closed_for_ms())}}},
          {"bytes_per_s", peer.bytes_per_s()},
          {"grants",
           {{"asked", peer.grants_asked()},
            {"missed", peer.grants_missed()},
            {"refused", peer.grants_refused()}}},
          {"pull",
           {{"pulls", peer.pulls()},
            {"pages", peer.pages_pulled()},
            {"bytes", peer.bytes_pulled()},
            {"micros", peer.pull_micros()},
            {"bad", peer.pages_bad()},
            {"failed", peer.pages_failed()}}}};
}

std::string Bytes(uint64_t bytes) {
  return FormatBytes(pando::Bytes(bytes));
}

std::string Ago(uint64_t milliseconds) {
  return milliseconds < 10'000 ? fmt::format("{:.1f} s", static_cast<double>(milliseconds) / 1000)
                               : Duration(milliseconds);
}

std::string NameOf(const v1::ClusterPeer& peer) {
  return peer.name().empty() ? "-" : peer.name();
}

std::string HeadText(const v1::Cluster& cluster) {
  Table table({}, {Table::kLeft, Table::kRight});
  table.Row({"blocks told to peers", Thousands(cluster.told_blocks())});
  table.Row({"blocks that peers told", Thousands(cluster.directory_blocks())});
  table.Row({"memory of that directory", Bytes(cluster.directory_bytes())});
  table.Row({"nodes that said hello", Thousands(cluster.guests())});
  table.Row({"feeds that they have open", Thousands(cluster.feeds())});
  table.Row({"granted to peers now", Bytes(cluster.granted_bytes())});
  table.Row({"fetches under way", Thousands(cluster.fetches())});
  return table.Text();
}

std::string WhoText(const v1::Cluster& cluster) {
  Table table(
      {"peer", "address", "boot", "state", "heard", "view", "blocks", "computing", "breaker"},
      {Table::kLeft, Table::kLeft, Table::kLeft, Table::kLeft, Table::kRight, Table::kLeft,
       Table::kRight, Table::kRight, Table::kLeft});
  for (const v1::ClusterPeer& peer : cluster.peers()) {
    const bool viewed = peer.view_complete() || peer.blocks() > 0 || peer.prefilling() > 0;
    const bool self = peer.state() == v1::ClusterPeer::SELF;
    table.Row({NameOf(peer), peer.address(),
               peer.boot_id() == 0 ? "-" : fmt::format("{:016x}", peer.boot_id()),
               StateName(peer.state()),
               peer.has_heard_ago_ms() ? Ago(peer.heard_ago_ms()) + " ago" : "never",
               peer.view_complete() ? "complete" : "-", viewed ? Thousands(peer.blocks()) : "-",
               viewed ? Thousands(peer.prefilling()) : "-",
               peer.has_closed_for_ms() ? "open for " + Ago(peer.closed_for_ms())
               : self                   ? "-"
                                        : "closed"});
  }
  return table.Text();
}

std::string PullsText(const v1::Cluster& cluster) {
  Table table(
      {"asked of", "grants", "missed", "refused", "pulls", "pages", "bytes", "seconds", "bad",
       "failed", "rate"},
      {Table::kLeft, Table::kRight, Table::kRight, Table::kRight, Table::kRight, Table::kRight,
       Table::kRight, Table::kRight, Table::kRight, Table::kRight, Table::kRight});
  for (const v1::ClusterPeer& peer : cluster.peers()) {
    if (peer.state() == v1::ClusterPeer::SELF) continue;
    const std::string rate =
        peer.bytes_per_s() > 0 ? Bytes(static_cast<uint64_t>(peer.bytes_per_s())) + "/s" : "-";
    table.Row({NameOf(peer), Thousands(peer.grants_asked()), Thousands(peer.grants_missed()),
               Thousands(peer.grants_refused()), Thousands(peer.pulls()),
               Thousands(peer.pages_pulled()), Bytes(peer.bytes_pulled()),
               fmt::format("{:.3f}", static_cast<double>(peer.pull_micros()) / 1e6),
               Thousands(peer.pages_bad()), Thousands(peer.pages_failed()), rate});
  }
  return table.Text();
}

// One node's figures, and how old they are.
struct NodeFigures {
  std::string name, address;
  uint64_t boot = 0;
  uint64_t age_ms = 0;
  const v1::NodeTotals* totals = nullptr;  // null: not heard
};

// This node first, then its peers, each node once: under its freshest figures.
std::vector<NodeFigures> AllNodes(const v1::Status& status) {
  std::vector<NodeFigures> nodes;
  nodes.push_back({status.name(), "", status.boot_id(), 0, &status.cluster().totals()});
  for (const v1::ClusterPeer& peer : status.cluster().peers()) {
    if (peer.state() == v1::ClusterPeer::SELF) continue;
    NodeFigures found{NameOf(peer), peer.address(), peer.boot_id(), peer.totals_ago_ms(),
                      peer.has_totals() ? &peer.totals() : nullptr};
    NodeFigures* same = nullptr;
    for (NodeFigures& node : nodes) {
      if (found.boot != 0 && node.boot == found.boot) same = &node;
    }
    if (same == nullptr) {
      nodes.push_back(found);
    } else if (found.totals != nullptr &&
               (same->totals == nullptr || found.age_ms < same->age_ms)) {
      *same = found;
    }
  }
  return nodes;
}

// The sum of all nodes that were heard and whose accounts can be true.
struct Sum {
  v1::NodeTotals totals;
  uint64_t nodes = 0, not_heard = 0, unbalanced = 0, oldest_ms = 0;
};
Sum SumOf(const std::vector<NodeFigures>& nodes) {
  Sum sum;
  for (const NodeFigures& node : nodes) {
    if (node.totals == nullptr) {
      ++sum.not_heard;
      continue;
    }
    if (!AccountProblem(node.name, node.totals->account()).empty()) {
      ++sum.unbalanced;  // said beside the sum, and no part of it
      continue;
    }
    ++sum.nodes;
    sum.oldest_ms = std::max(sum.oldest_ms, node.age_ms);
    AddTo(node.totals->account(), sum.totals.mutable_account());
    sum.totals.set_pages(sum.totals.pages() + node.totals->pages());
    sum.totals.set_pages_free(sum.totals.pages_free() + node.totals->pages_free());
    sum.totals.set_blocks(sum.totals.blocks() + node.totals->blocks());
  }
  return sum;
}

json TotalsJson(const v1::NodeTotals& totals) {
  json out = AccountJson(totals.account());
  out["pages"] = totals.pages();
  out["pages_free"] = totals.pages_free();
  out["blocks"] = totals.blocks();
  return out;
}

}  // namespace

json ClusterJson(const v1::Status& status) {
  if (!status.has_cluster()) return nullptr;
  const v1::Cluster& cluster = status.cluster();
  json peers = json::array();
  for (const v1::ClusterPeer& peer : cluster.peers()) peers.push_back(PeerJson(peer));
  return {{"told_blocks", cluster.told_blocks()},
          {"directory_blocks", cluster.directory_blocks()},
          {"directory_bytes", cluster.directory_bytes()},
          {"guests", cluster.guests()},
          {"feeds", cluster.feeds()},
          {"granted_bytes", cluster.granted_bytes()},
          {"fetches", cluster.fetches()},
          {"peers", peers}};
}

std::string PeersText(const v1::Status& status) {
  if (!status.has_cluster()) return kNoCluster;
  const v1::Cluster& cluster = status.cluster();
  std::string text = HeadText(cluster) + "\n";
  if (cluster.peers().empty()) {
    return text + "no peers: --peers names none, or its names have no address now\n";
  }
  text += WhoText(cluster) + "\n" + PullsText(cluster);
  for (const v1::ClusterPeer& peer : cluster.peers()) {
    if (peer.why().empty()) continue;
    text += fmt::format("{}: {}\n", Printable(peer.address()), Printable(peer.why()));
  }
  return text;
}

bool PeersKnown(const v1::Status& status) {
  const auto& peers = status.cluster().peers();
  return std::all_of(peers.begin(), peers.end(), [](const v1::ClusterPeer& peer) {
    return peer.state() == v1::ClusterPeer::SELF ||
           (peer.state() == v1::ClusterPeer::CONNECTED && peer.view_complete());
  });
}

json ClusterStatsJson(const v1::Status& status) {
  if (!status.has_cluster()) return {{"cluster", nullptr}, {"nodes", json::array()}};
  const std::vector<NodeFigures> all = AllNodes(status);
  json nodes = json::array();
  for (const NodeFigures& node : all) {
    json out = node.totals == nullptr ? json::object() : TotalsJson(*node.totals);
    out["name"] = node.name;
    out["address"] = node.address;
    out["boot_id"] = fmt::format("{:016x}", node.boot);
    out["heard"] = node.totals != nullptr;
    out["age_ms"] = node.totals == nullptr ? json() : json(node.age_ms);
    nodes.push_back(out);
  }
  const Sum sum = SumOf(all);
  json cluster = TotalsJson(sum.totals);
  cluster["nodes"] = sum.nodes;
  cluster["not_heard"] = sum.not_heard;
  cluster["unbalanced"] = sum.unbalanced;
  cluster["oldest_age_ms"] = sum.oldest_ms;
  return {{"cluster", cluster}, {"nodes", nodes}};
}

std::string ClusterStatsText(const v1::Status& status) {
  if (!status.has_cluster()) return kNoCluster;
  const std::vector<NodeFigures> all = AllNodes(status);
  Table table = AccountTable({"node", "age", "blocks", "free pages", "pages"});
  std::string silent;
  const auto row = [&](const std::string& name, const std::string& age,
                       const v1::NodeTotals& totals) {
    AccountRow({name, age, Thousands(totals.blocks()), Thousands(totals.pages_free()),
                Thousands(totals.pages())},
               totals.account(), &table);
  };
  for (const NodeFigures& node : all) {
    if (node.totals == nullptr) {
      silent += fmt::format("{} ({}) has told no figures: it is not in the sum\n",
                            Printable(node.name), Printable(node.address));
    } else {
      row(node.name, node.address.empty() ? "now" : Ago(node.age_ms), *node.totals);
    }
  }
  const Sum sum = SumOf(all);
  row(Counted(sum.nodes, "node", "nodes"), "to " + Ago(sum.oldest_ms), sum.totals);
  return table.Text() + kAccountLegend + silent;
}

std::string ClusterStatsProblem(const v1::Status& status) {
  if (!status.has_cluster()) return "";
  for (const NodeFigures& node : AllNodes(status)) {
    if (node.totals == nullptr) continue;
    const std::string problem = AccountProblem(node.name, node.totals->account());
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace pando::ctl
