// What each command of pandoctl does once its command line is understood. Each prints its result
// and returns an ExitCode. Main thread.
#ifndef PANDO_CLIENT_CTL_COMMANDS_H_
#define PANDO_CLIENT_CTL_COMMANDS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "client/ctl/replay.h"

namespace pando::ctl {

struct AdminArgs {
  std::string address;  // unix:PATH or PATH
  int64_t timeout_ns = 5'000'000'000;
  bool json = false;
};
struct TreeArgs {
  std::optional<uint32_t> space;  // none: all
  uint64_t limit = 1000;          // runs of each space
  bool peers = false;             // also who else holds them
};
struct ReplayArgs {
  std::string trace;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  ReplayOptions options;
  std::string json_file;  // empty: none
};

int RunStatus(const AdminArgs& admin);
int RunStats(const AdminArgs& admin, bool cluster);
// Waits, `wait_ns` at most, until each peer is connected and all that it tells is known; kFailed if
// one is not by then. 0: prints what there is.
int RunPeers(const AdminArgs& admin, int64_t wait_ns);
int RunTree(const AdminArgs& admin, const TreeArgs& tree);
int RunCheck(const AdminArgs& admin);
int RunReplay(const ReplayArgs& args);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_COMMANDS_H_
