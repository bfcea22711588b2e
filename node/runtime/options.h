// What pando-node is told at its start: by flags, or by a file of the same names (TOML or INI).
//
// Parsed once, validated, printed. An unknown key or an impossible value is refused by name, with
// what is allowed. Immutable after parsing.
#ifndef PANDO_NODE_RUNTIME_OPTIONS_H_
#define PANDO_NODE_RUNTIME_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node/core/node_core.h"
#include "node/runtime/cluster_options.h"
#include "radix/base/ids.h"

namespace pando::runtime {

struct Options {
  std::string name = "node";
  std::string socket = "/run/pando/node.sock";
  std::string admin;  // once parsed, never empty: admin.sock beside the socket by default
  Bytes host_slab{1ull << 30};
  double space_share = 0.8;
  std::string key_secret_file;
  std::string key_secret;    // the file's bytes
  std::string metrics_host;  // empty: no HTTP
  int metrics_port = 0;      // 0: any that is free
  LogLine::Level log_level = LogLine::Level::kInfo;
  int64_t drain_timeout_ms = 5000;
  bool list_steps = false;
  std::string pause_at;  // empty: nowhere
  uint64_t pause_count = 1;
  ClusterOptions cluster;
};

// Nothing is to be run: print `text` (on stderr unless `code` is 0) and exit.
struct Exit {
  int code = 0;
  std::string text;
};

inline constexpr int kExitConfig = 2;

// Reads flags, the file that --config names, and the secret's file.
std::variant<Options, Exit> ParseOptions(int argc, const char* const* argv);

// For the log: every option, the secret as "set" or "unset".
std::vector<std::pair<std::string, std::string>> Describe(const Options& options);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_OPTIONS_H_
