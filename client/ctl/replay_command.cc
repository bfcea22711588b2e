#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/ctl/commands.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/progress.h"
#include "client/ctl/trace.h"

namespace pando::ctl {
namespace {

// What was asked for, so that a result can be made again from its file.
nlohmann::json ArgsJson(const ReplayArgs& args) {
  const ReplayOptions& options = args.options;
  return {{"trace", args.trace},
          {"replicas", options.sockets},
          {"routing", std::string(RoutingName(options.routing))},
          {"block_tokens", options.block_tokens},
          {"page_bytes", options.page_bytes},
          {"shards", options.shards},
          {"prefill_rate", options.prefill_tokens_per_s},
          {"prefill_speedup", options.prefill_speedup},
          {"await_ms", options.await_ns / 1'000'000},
          {"seed", options.seed}};
}

int Fail(const std::string& message, int code) {
  Complain(message);
  return code;
}

int FailedToStart(const absl::Status& status) {
  return Fail(std::string(status.message()),
              status.code() == absl::StatusCode::kUnavailable ? kUnreachable : kFailed);
}

}  // namespace

int RunReplay(const ReplayArgs& args) {
  const size_t nodes = NodesOf(args.options.sockets).size();
  if (!args.options.admins.empty() && args.options.admins.size() != nodes) {
    return Fail(
        fmt::format("--admins: found {} sockets, expected one for each of the {} nodes that "
                    "--replicas names, in that order",
                    args.options.admins.size(), nodes),
        kUsage);
  }
  Interrupt interrupt;
  const auto requests = ReadTrace(args.trace, args.limit);
  if (!requests.ok()) return Fail(std::string(requests.status().message()), kFailed);
  std::ofstream file;
  if (!args.json_file.empty()) {
    file.open(args.json_file);
    if (!file) {
      return Fail(fmt::format("cannot write '{}': {}", args.json_file, std::strerror(errno)),
                  kFailed);
    }
  }
  absl::StatusOr<ReplayResult> result = [&] {
    Progress progress(requests->size(), StderrIsTerminal());
    return Replay(args.options, *requests, progress, interrupt);
  }();
  if (!result.ok()) return FailedToStart(result.status());
  Say(ToText(*result));
  if (file.is_open()) {
    nlohmann::json json = ToJson(*result);
    json["options"] = ArgsJson(args);
    file << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    file.close();
    if (!file) return Fail(fmt::format("cannot write all of '{}'", args.json_file), kFailed);
  }
  if (!result->Problem().empty()) return kFailed;
  if (result->interrupted) return kInterrupted;
  return result->unreached > 0 ? kUnreachable : kOk;
}

}  // namespace pando::ctl
