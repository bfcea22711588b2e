#include "client/ctl/replay_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

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

json PullJson(const PullTotals& pull) {
  return {{"pages", pull.pages},
          {"bytes", pull.bytes},
          {"seconds", pull.seconds},
          {"failed", pull.failed},
          {"declined", pull.declined}};
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

PullTotals& PullTotals::operator+=(const PullTotals& other) {
  pages += other.pages;
  bytes += other.bytes;
  failed += other.failed;
  declined += other.declined;
  seconds += other.seconds;
  return *this;
}

WaitTotals& WaitTotals::operator+=(const WaitTotals& other) {
  tickets += other.tickets;
  more += other.more;
  late += other.late;
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
  waits += outcome.waits;
  if (outcome.await_ns > 0) latency.await_ns.push_back(outcome.await_ns);
  if (outcome.acquire_ns > 0) latency.acquire_ns.push_back(outcome.acquire_ns);
  if (outcome.load_ns > 0) latency.load_ns.push_back(outcome.load_ns);
  NodeTotals& totals = nodes[node];
  ++totals.requests;
  totals.unreached += outcome.reached ? 0 : 1;
  totals.tokens += outcome.tokens;
}

void ReplayResult::AddCounts(size_t node, const NodeCounts& counts) {
  NodeTotals& totals = nodes[node];
  totals.name = counts.name;
  totals.boot_id = counts.boot_id;
  totals.pull += counts.pull;
  pull += counts.pull;
  // Never more than was verified here, whatever a node says.
  const uint64_t moved = std::min(counts.hit_peer, totals.tokens.hit_host);
  for (TokenAccount* account : {&tokens, &totals.tokens}) {
    account->hit_host -= moved;
    account->hit_peer += moved;
  }
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
                     {"name", node.name},
                     {"boot_id", fmt::format("{:016x}", node.boot_id)},
                     {"watched", node.unwatched.empty() && !node.restarted},
                     {"replicas", node.replicas},
                     {"requests", node.requests},
                     {"unreached", node.unreached},
                     {"tokens", TokensJson(node.tokens)},
                     {"pull", PullJson(node.pull)}});
  }
  const PageTotals& pages = result.pages;
  const WaitTotals& waits = result.waits;
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
          {"waits", {{"tickets", waits.tickets}, {"more", waits.more}, {"late", waits.late}}},
          {"pull", PullJson(result.pull)},
          {"latency_us",
           {{"acquire", PercentilesJson(result.latency.acquire_ns)},
            {"await", PercentilesJson(result.latency.await_ns)},
            {"load", PercentilesJson(result.latency.load_ns)},
            {"pull", PercentilesJson(result.latency.pull_ns)}}},
          {"nodes", nodes}};
}

}  // namespace pando::ctl
