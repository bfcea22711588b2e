#include "client/ctl/replay_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "client/ctl/printable.h"
#include "client/ctl/table.h"

namespace pando::ctl {
namespace {

using nlohmann::json;

double Rate(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

json TokensJson(const TokenAccount& tokens) {
  return {{"prompt", tokens.prompt},         {"hit_engine", tokens.hit_engine},
          {"hit_device", tokens.hit_device}, {"hit_host", tokens.hit_host},
          {"hit_peer", tokens.hit_peer},     {"computed", tokens.computed}};
}

json PercentilesJson(const std::vector<int64_t>& nanos) {
  const Percentiles percentiles = PercentilesOf(nanos);
  return {{"p50", percentiles.p50}, {"p99", percentiles.p99}};
}

std::string TokensText(const ReplayResult& result) {
  const TokenAccount& tokens = result.tokens;
  Table table({"tokens", "count", "share"}, {Table::kLeft, Table::kRight, Table::kRight});
  const auto row = [&](const char* name, uint64_t count) {
    table.Row({name, Thousands(count), Percent(count, tokens.prompt)});
  };
  row("all prompts", tokens.prompt);
  row("  hit in host memory", tokens.hit_host);
  if (tokens.hit_device > 0) row("  hit in device memory", tokens.hit_device);
  if (tokens.hit_engine > 0) row("  hit in the engine", tokens.hit_engine);
  if (tokens.hit_peer > 0) row("  hit at a peer", tokens.hit_peer);
  row("  computed", tokens.computed);
  if (result.failed_tokens > 0) row("    of these after a failed load", result.failed_tokens);
  row("an infinite cache, empty at first, would hit", result.ceiling_tokens);
  return table.Text();
}

std::string PagesText(const PageTotals& pages) {
  Table table({"pages", "count"}, {Table::kLeft, Table::kRight});
  table.Row({"stored", Thousands(pages.stored)});
  table.Row({"loaded", Thousands(pages.loaded)});
  table.Row({"  every byte verified", Thousands(pages.verified)});
  table.Row({"  wrong", Thousands(pages.wrong)});
  if (pages.bad > 0) table.Row({"refused by checksum", Thousands(pages.bad)});
  return table.Text();
}

std::string LatencyText(const Latencies& latency) {
  Table table({"latency in us", "p50", "p99"}, {Table::kLeft, Table::kRight, Table::kRight});
  const auto row = [&](const char* name, const std::vector<int64_t>& nanos) {
    const Percentiles percentiles = PercentilesOf(nanos);
    table.Row(
        {name, fmt::format("{:.0f}", percentiles.p50), fmt::format("{:.0f}", percentiles.p99)});
  };
  row("acquire", latency.acquire_ns);
  row("load", latency.load_ns);
  if (!latency.pull_ns.empty()) row("pull", latency.pull_ns);
  return table.Text();
}

std::string NodesText(const ReplayResult& result) {
  Table table({"node", "replicas", "requests", "prompt tokens", "hit"},
              {Table::kLeft, Table::kRight, Table::kRight, Table::kRight, Table::kRight});
  for (const NodeTotals& node : result.nodes) {
    table.Row({node.socket, Thousands(node.replicas), Thousands(node.requests),
               Thousands(node.tokens.prompt), Percent(node.tokens.hits(), node.tokens.prompt)});
  }
  return table.Text();
}

std::string RemarksText(const ReplayResult& result) {
  std::string text;
  for (const NodeTotals& node : result.nodes) {
    if (node.unreached == 0) continue;
    text += fmt::format("{}: no answer for {} of its {} requests; they were computed as misses\n",
                        node.socket, Thousands(node.unreached), Thousands(node.requests));
  }
  if (!result.ceiling_applies()) {
    text += fmt::format(
        "{} tokens of blocks that this replay had not stored were there: a node was warm, as after "
        "an earlier replay with this --seed\n",
        Thousands(result.warm_tokens));
  }
  if (result.not_stored > 0) {
    text += fmt::format(
        "{} requests found no room for their blocks: all is claimed, or other spaces have the "
        "slab (a larger --host-slab has more; a node forgets spaces when it restarts)\n",
        Thousands(result.not_stored));
  }
  if (result.refused > 0) {
    text += fmt::format("calls of {} requests were turned down, the first because: {}\n",
                        Thousands(result.refused), Printable(result.first_refusal));
  }
  if (result.interrupted) {
    text += fmt::format("interrupted after {} requests\n", Thousands(result.requests));
  }
  return text;
}

}  // namespace

TokenAccount& TokenAccount::operator+=(const TokenAccount& other) {
  prompt += other.prompt;
  hit_engine += other.hit_engine;
  hit_device += other.hit_device;
  hit_host += other.hit_host;
  hit_peer += other.hit_peer;
  computed += other.computed;
  return *this;
}

PageTotals& PageTotals::operator+=(const PageTotals& other) {
  loaded += other.loaded;
  verified += other.verified;
  wrong += other.wrong;
  bad += other.bad;
  stored += other.stored;
  return *this;
}

Percentiles PercentilesOf(std::vector<int64_t> nanos) {
  if (nanos.empty()) return {};
  std::sort(nanos.begin(), nanos.end());
  const auto at = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(nanos.size()));
    return static_cast<double>(nanos[static_cast<size_t>(rank) - 1]) / 1000;
  };
  return {.p50 = at(0.50), .p99 = at(0.99)};
}

void ReplayResult::Add(size_t node, const Outcome& outcome, uint64_t ceiling) {
  const uint64_t offered = outcome.tokens.hits() + outcome.failed_tokens;
  ceiling_tokens += ceiling;
  warm_tokens += offered - std::min(offered, ceiling);
  ++requests;
  tokens += outcome.tokens;
  failed_tokens += outcome.failed_tokens;
  pages += outcome.pages;
  not_stored += outcome.full ? 1 : 0;
  unreached += outcome.reached ? 0 : 1;
  refused += outcome.refusal.empty() ? 0 : 1;
  if (first_refusal.empty()) first_refusal = outcome.refusal;
  if (outcome.acquire_ns > 0) latency.acquire_ns.push_back(outcome.acquire_ns);
  if (outcome.load_ns > 0) latency.load_ns.push_back(outcome.load_ns);
  NodeTotals& totals = nodes[node];
  ++totals.requests;
  totals.unreached += outcome.reached ? 0 : 1;
  totals.tokens += outcome.tokens;
}

double ReplayResult::hit_rate() const {
  return Rate(tokens.hits(), tokens.prompt);
}
double ReplayResult::ceiling_rate() const {
  return Rate(ceiling_tokens, tokens.prompt);
}

std::string ReplayResult::Problem() const {
  if (pages.wrong > 0) {
    return fmt::format(
        "{} of {} loaded pages held other bytes than they must, with a right checksum", pages.wrong,
        pages.loaded);
  }
  if (!tokens.balances()) {
    return fmt::format("the account does not balance: {} prompt tokens, {} hit + {} computed",
                       tokens.prompt, tokens.hits(), tokens.computed);
  }
  return "";
}

json ToJson(const ReplayResult& result) {
  json nodes = json::array();
  for (const NodeTotals& node : result.nodes) {
    nodes.push_back({{"socket", node.socket},
                     {"replicas", node.replicas},
                     {"requests", node.requests},
                     {"unreached", node.unreached},
                     {"tokens", TokensJson(node.tokens)}});
  }
  const PageTotals& pages = result.pages;
  const PullTotals& pull = result.pull;
  return {{"requests", result.requests},
          {"interrupted", result.interrupted},
          {"seconds", result.seconds},
          {"tokens", TokensJson(result.tokens)},
          {"hit_rate", result.hit_rate()},
          {"ceiling",
           {{"hit_tokens", result.ceiling_tokens},
            {"hit_rate", result.ceiling_rate()},
            {"applies", result.ceiling_applies()}}},
          {"failed_tokens", result.failed_tokens},
          {"not_stored", result.not_stored},
          {"unreached", result.unreached},
          {"refused", result.refused},
          {"pages",
           {{"loaded", pages.loaded},
            {"stored", pages.stored},
            {"verified", pages.verified},
            {"wrong", pages.wrong},
            {"bad", pages.bad}}},
          {"pull",
           {{"pages", pull.pages},
            {"bytes", pull.bytes},
            {"seconds", pull.seconds},
            {"failed", pull.failed},
            {"declined", pull.declined}}},
          {"latency_us",
           {{"acquire", PercentilesJson(result.latency.acquire_ns)},
            {"load", PercentilesJson(result.latency.load_ns)},
            {"pull", PercentilesJson(result.latency.pull_ns)}}},
          {"nodes", nodes}};
}

std::string ToText(const ReplayResult& result) {
  std::string text = TokensText(result) + "\n" + PagesText(result.pages) + "\n" +
                     LatencyText(result.latency) + "\n" + NodesText(result) + "\n" +
                     RemarksText(result);
  const std::string problem = result.Problem();
  const std::string ceiling =
      result.ceiling_applies()
          ? fmt::format("the ceiling is {:.2f} %", 100 * result.ceiling_rate())
          : fmt::format("the node was warm: the ceiling of an empty one, {:.2f} %, does not apply",
                        100 * result.ceiling_rate());
  text += fmt::format("{} requests in {:.1f} s: hit {:.2f} % of all prompt tokens, {}; wrong={}\n",
                      Thousands(result.requests), result.seconds, 100 * result.hit_rate(), ceiling,
                      result.pages.wrong);
  if (!problem.empty()) text += "WRONG: " + problem + "\n";
  return text;
}

}  // namespace pando::ctl
