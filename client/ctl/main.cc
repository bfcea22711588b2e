// pandoctl: looks into a node, and plays traces through nodes. See commands.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "client/ctl/commands.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/output.h"
#include "node/core/limits.h"
#include "radix/base/units.h"

namespace {

using pando::ctl::AdminArgs;
using pando::ctl::ReplayArgs;
using pando::ctl::TreeArgs;

constexpr size_t kSocketPathMax = 107;  // sockaddr_un's, without its final zero

constexpr const char* kExamples = R"(Examples:
  pandoctl --admin unix:/run/pando/admin.sock status
  pandoctl --admin unix:/run/pando/admin.sock tree --space 0 --limit 50
  pandoctl replay --trace trace.jsonl.gz --replicas unix:/run/pando/node.sock --limit 500

Exit status: 0 ok; 1 failed, or something wrong was found; 2 wrong command line; 3 no node answers,
or it left some requests of a replay without an answer; 130 interrupted.)";

constexpr const char* kReplayHelp =
    R"(One request at a time, in file order. Each replica loads what the node has, compares
every byte with what it must be, and stores what it had to compute. If the node says that
another replica or a peer is making what is missing, the replica waits for it, --await-ms
at most. --prefill-rate is what the replicas tell the node, which weighs it against the
time of a fetch; computing takes that time only with --prefill-speedup. A node that goes
away is waited for, for twice --timeout in all; requests that it does not answer are misses.

latency: acquire is the look-up there and back; await is the wait for what another makes;
load is begin, all copies and end of one request, without the comparison; pull is the mean
of a request's pulls from peers, by the clock of its node. hit_peer and pull are what the
nodes' own status says.

Example, two replicas that share one node:
  pandoctl replay --trace trace.jsonl.gz --limit 500 \
    --replicas unix:/run/pando/node.sock,unix:/run/pando/node.sock)";

// Options of one parse; CLI11 writes into them.
struct CommandLine {
  AdminArgs admin;
  TreeArgs tree;
  ReplayArgs replay;
  double timeout_s = 5;
  std::string replicas, admins;
  int64_t await_ms = 2000;
  std::string routing = "round-robin";
  std::string page_bytes = "4096";
  uint32_t tree_space = 0;
  int64_t wait_s = 0;
  bool cluster_stats = false;
};

std::string CheckSocketPath(const std::string& text) {
  const size_t length = text.starts_with("unix:") ? text.size() - 5 : text.size();
  if (length == 0) return "an empty path; expected unix:PATH";
  if (length <= kSocketPathMax) return "";
  return "the path has " + std::to_string(length) + " bytes, a Unix socket's may have " +
         std::to_string(kSocketPathMax) + ": choose a shorter one";
}

std::string CheckSocketPaths(const std::string& text) {
  for (const std::string& path : CLI::detail::split(text, ',')) {
    const std::string wrong = CheckSocketPath(path);
    if (!wrong.empty()) return wrong;
  }
  return text.empty() || text.ends_with(',') ? CheckSocketPath("") : "";
}

// Digits and nothing else: no sign that wraps around, no zero in front that makes it octal.
CLI::Validator Whole(uint64_t min, uint64_t max) {
  const bool bounded = max < std::numeric_limits<uint64_t>::max();
  const std::string range =
      bounded ? fmt::format("from {} to {}", min, max) : fmt::format("from {}", min);
  const auto check = [=](const std::string& text) -> std::string {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size() &&
                       (text.size() == 1 || text[0] != '0');
    if (whole && value >= min && value <= max) return "";
    return fmt::format("found '{}', expected a whole number {}", text, range);
  };
  return CLI::Validator(check, range);
}

std::string CheckTimeout(const std::string& text) {
  double seconds = 0;
  // The other way round would let through what is no number at all, nan.
  if (CLI::detail::lexical_cast(text, seconds) && seconds >= 0.01 && seconds <= 3600) return "";
  return "found '" + text + "', expected seconds from 0.01 to 3600";
}

std::string CheckPageBytes(const std::string& text) {
  const auto bytes = pando::ParseBytes(text);
  if (bytes && bytes->value() >= 1 && bytes->value() <= pando::limits::kPageBytes) return "";
  return "found '" + text + "', expected a size from 1 B to " +
         pando::FormatBytes(pando::Bytes(pando::limits::kPageBytes)) + ", as 4096 or 64KiB";
}

// What computing takes, and waiting may take.
void AddTiming(CLI::App* replay, CommandLine& line) {
  ReplayArgs& args = line.replay;
  replay
      ->add_option("--prefill-rate", args.options.prefill_tokens_per_s,
                   "Tokens a second that a replica would compute; 0: not told")
      ->check(Whole(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str();
  replay
      ->add_option("--prefill-speedup", args.options.prefill_speedup,
                   "Computing takes 1/N of the time that --prefill-rate says; 0: no time")
      ->check(Whole(0, 1'000'000'000))
      ->capture_default_str();
  replay
      ->add_option("--await-ms", line.await_ms,
                   "How long a replica waits for what another makes; 0: not at all")
      ->check(Whole(0, 600'000))
      ->capture_default_str();
  replay
      ->add_option("--admins", line.admins,
                   "The nodes' admin sockets, in the order of --replicas [admin.sock beside each]")
      ->check(CheckSocketPaths);
}

void AddReplay(CLI::App& app, CommandLine& line) {
  CLI::App* replay = app.add_subcommand("replay", "Play a trace through stand-in replicas");
  replay->footer(kReplayHelp);
  ReplayArgs& args = line.replay;
  replay->add_option("--trace", args.trace, "JSON-lines trace, plain or gzip")->required();
  replay
      ->add_option(
          "--replicas", line.replicas,
          "One node socket for each replica, unix:PATH,unix:PATH; a socket may come several "
          "times")
      ->required()
      ->check(CheckSocketPaths);
  replay->add_option("--limit", args.limit, "Play only the first N requests")
      ->check(Whole(1, std::numeric_limits<uint64_t>::max()));
  replay->add_option("--routing", line.routing, "Which replica gets a request")
      ->check(CLI::IsMember({"random", "round-robin", "prefix"}))
      ->capture_default_str();
  replay->add_option("--block-tokens", args.options.block_tokens, "Tokens of a block")
      ->check(Whole(1, pando::limits::kBlockTokens))
      ->capture_default_str();
  replay->add_option("--page-bytes", line.page_bytes, "Bytes of one block's KV in one shard")
      ->check(CheckPageBytes)
      ->capture_default_str();
  replay->add_option("--shards", args.options.shards, "Worker sessions of each replica")
      ->check(Whole(1, pando::limits::kShards))
      ->capture_default_str();
  AddTiming(replay, line);
  replay->add_option("--seed", args.options.seed, "Of tokens and random routing")
      ->check(Whole(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str();
  replay->add_option("--json", args.json_file, "Also write the result to this file");
}

void AddCommands(CLI::App& app, CommandLine& line) {
  app.footer(kExamples);
  app.require_subcommand(0, 1);  // none at all is told below, after what is unknown
  app.fallthrough();
  app.set_version_flag("--version", std::string("pandoctl ") + PANDO_VERSION);
  app.add_option("--admin", line.admin.address, "The node's admin socket, unix:PATH")
      ->check(CheckSocketPath);
  app.add_option("--timeout", line.timeout_s, "Seconds that a node has to answer")
      ->check(CheckTimeout)
      ->capture_default_str();
  const auto add_json = [&](CLI::App* command) {
    command->add_flag("--json", line.admin.json, "Print JSON instead of tables");
    return command;
  };
  add_json(app.add_subcommand("status", "What the node is, holds and is doing"));
  CLI::App* stats = add_json(
      app.add_subcommand("stats", "The account: where the tokens of all requests came from"));
  stats->add_flag("--cluster", line.cluster_stats,
                  "Of each node of the cluster and their sum, as they told this node");
  CLI::App* peers = add_json(
      app.add_subcommand("peers", "The other nodes of the cluster, as this node sees them"));
  peers->add_option("--wait", line.wait_s, "Seconds to wait until all of them are well known")
      ->check(Whole(0, 3600));
  CLI::App* tree = add_json(app.add_subcommand("tree", "The prefixes that the node has"));
  tree->add_option("--space", line.tree_space, "Only this space")
      ->check(Whole(0, std::numeric_limits<uint32_t>::max()));
  tree->add_option("--limit", line.tree.limit, "At most so many runs of each space")
      ->check(Whole(1, 100'000))
      ->capture_default_str();
  tree->add_flag("--peers", line.tree.peers, "Also which peers hold each run's last block");
  add_json(app.add_subcommand("check", "Let the node recount everything; exit status 1 if broken"));
  AddReplay(app, line);
}

int RunCommand(const CLI::App& app, CommandLine& line) {
  if (app.get_subcommands().empty()) {
    throw CLI::RequiredError("A command (status, stats, peers, tree, check or replay)");
  }
  const auto timeout_ns = static_cast<int64_t>(std::llround(line.timeout_s * 1e9));
  if (app.got_subcommand("replay")) {
    line.replay.options.sockets = CLI::detail::split(line.replicas, ',');
    if (!line.admins.empty()) {
      line.replay.options.admins = CLI::detail::split(line.admins, ',');
    }
    line.replay.options.await_ns = line.await_ms * 1'000'000;
    line.replay.options.timeout_ns = timeout_ns;
    line.replay.options.routing = *pando::ctl::ParseRouting(line.routing);
    line.replay.options.page_bytes = pando::ParseBytes(line.page_bytes)->value();
    return pando::ctl::RunReplay(line.replay);
  }
  if (line.admin.address.empty()) {
    throw CLI::RequiredError("--admin unix:PATH, the admin socket of the node");
  }
  line.admin.timeout_ns = timeout_ns;
  if (app.got_subcommand("status")) return pando::ctl::RunStatus(line.admin);
  if (app.got_subcommand("stats")) return pando::ctl::RunStats(line.admin, line.cluster_stats);
  if (app.got_subcommand("peers")) {
    return pando::ctl::RunPeers(line.admin, line.wait_s * 1'000'000'000);
  }
  if (app.got_subcommand("check")) return pando::ctl::RunCheck(line.admin);
  if (app.get_subcommand("tree")->count("--space") > 0) line.tree.space = line.tree_space;
  return pando::ctl::RunTree(line.admin, line.tree);
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Looks into a Pando node and plays traces through nodes.", "pandoctl");
  try {
    AddCommands(app, line);
    app.parse(argc, argv);
    return pando::ctl::FinishOutput(RunCommand(app, line));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error) == 0 ? pando::ctl::kOk : pando::ctl::kUsage;
    return pando::ctl::FinishOutput(code);
  }
}
