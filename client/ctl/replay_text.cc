// A replay's result for people.
#include <fmt/format.h>

#include "client/ctl/printable.h"
#include "client/ctl/replay_result.h"
#include "client/ctl/table.h"

namespace pando::ctl {
namespace {

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
  if (!latency.await_ns.empty()) row("await what another makes", latency.await_ns);
  row("load", latency.load_ns);
  if (!latency.pull_ns.empty()) row("pull from a peer", latency.pull_ns);
  return table.Text();
}

std::string NodesText(const ReplayResult& result) {
  Table table({"node", "replicas", "requests", "prompt tokens", "hits", "at peers", "hits/prompt"},
              {Table::kLeft, Table::kRight, Table::kRight, Table::kRight, Table::kRight,
               Table::kRight, Table::kRight});
  for (const NodeTotals& node : result.nodes) {
    table.Row({node.socket, Thousands(node.replicas), Thousands(node.requests),
               Thousands(node.tokens.prompt), Thousands(node.tokens.hits()),
               Thousands(node.tokens.hit_peer), Percent(node.tokens.hits(), node.tokens.prompt)});
  }
  return table.Text();
}

std::string PullText(const ReplayResult& result) {
  const PullTotals& pull = result.pull;
  if (pull.pages + pull.failed + pull.declined + result.waits.tickets == 0) return "";
  Table table({"from peers", "count"}, {Table::kLeft, Table::kRight});
  table.Row({"requests that waited for what another made", Thousands(result.waits.tickets)});
  table.Row({"  and got more blocks", Thousands(result.waits.more)});
  table.Row({"  and went on without waiting to the end", Thousands(result.waits.late)});
  table.Row({"pages pulled", Thousands(pull.pages)});
  table.Row({"bytes pulled", Thousands(pull.bytes)});
  table.Row({"seconds of all pulls", fmt::format("{:.3f}", pull.seconds)});
  table.Row({"pages that did not come", Thousands(pull.failed)});
  table.Row({"fetches declined: computing is faster", Thousands(pull.declined)});
  return table.Text() + "\n";
}

std::string RemarksText(const ReplayResult& result) {
  std::string text;
  for (const NodeTotals& node : result.nodes) {
    if (node.unreached == 0) continue;
    text += fmt::format("{}: no answer for {} of its {} requests; they were computed as misses\n",
                        node.socket, Thousands(node.unreached), Thousands(node.requests));
  }
  for (const NodeTotals& node : result.nodes) {
    if (node.restarted) {
      text += fmt::format(
          "{}: it was started anew meanwhile; what it pulled at the end of its life before counts "
          "as hits in host memory\n",
          node.socket);
    }
    if (node.unwatched.empty()) continue;
    text += fmt::format(
        "{}: what it pulled from peers is not known, hits there count as hits in host memory "
        "(--admins names admin sockets): {}\n",
        node.socket, PrintableLines(node.unwatched));
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

std::string ToText(const ReplayResult& result) {
  std::string text = TokensText(result) + "\n" + PagesText(result.pages) + "\n" + PullText(result) +
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
