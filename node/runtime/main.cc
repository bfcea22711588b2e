// pando-node: the daemon of a host.
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "node/control/quiet.h"
#include "node/local/codec.h"
#include "node/runtime/environment.h"
#include "node/runtime/hard_stop.h"
#include "node/runtime/log.h"
#include "node/runtime/node.h"
#include "node/runtime/options.h"
#include "node/runtime/step_names.h"

namespace {

using pando::LogLine;

// Signals that end the node are read by HardStop, so all threads start with them blocked; and first
// of all, since one that comes before, even while the node executes itself anew, waits for it.
// A peer that goes away while it is written to is an error code, not a signal; so is the limit on
// files (ulimit -f), which memory that engines map counts as well.
void SetUpSignals() {
  const sigset_t set = pando::runtime::EndingSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

// One extent, one session, one process are one descriptor each.
void RaiseFdLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int RunNode(pando::runtime::Options options) {
  std::unique_ptr<pando::runtime::PauseListener> pause;
  if (!options.pause_at.empty()) {
    pause = std::make_unique<pando::runtime::PauseListener>(options.pause_at, options.pause_count);
  }
  // The first to begin, and the last to end of what can hang.
  std::optional<pando::runtime::HardStop> hard_stop(
      std::chrono::milliseconds(options.drain_timeout_ms));
  pando::runtime::Log log(options.log_level);
  log.Write(LogLine::Level::kInfo, "node.starting", pando::runtime::Describe(options));
  auto node =
      pando::runtime::Node::Create(std::move(options), &log, hard_stop->signals(), pause.get());
  if (!node.ok()) {
    log.Write(LogLine::Level::kError, "node.refused",
              {{"why", std::string(node.status().message())}});
    return pando::runtime::kExitConfig;
  }
  const int status = (*node)->Run();
  (*node)->End();
  hard_stop.reset();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  SetUpSignals();
  pando::runtime::EnsureEnvironment(argv);
  std::variant<pando::runtime::Options, pando::runtime::Exit> parsed =
      pando::runtime::ParseOptions(argc, argv);
  if (const auto* exit = std::get_if<pando::runtime::Exit>(&parsed)) {
    std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
    return exit->code;
  }
  auto& options = std::get<pando::runtime::Options>(parsed);
  if (options.list_steps) {
    for (const std::string_view step : pando::runtime::AllSteps()) {
      std::printf("%.*s\n", static_cast<int>(step.size()), step.data());
    }
    return 0;
  }
  ::umask(0007);  // nothing that a node creates is open to others
  RaiseFdLimit();
  pando::local::QuietParser();
  pando::control::QuietGrpc();
  return RunNode(std::move(options));
}
