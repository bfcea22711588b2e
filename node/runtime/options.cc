#include "node/runtime/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "node/core/problem.h"
#include "node/runtime/config_file.h"
#include "node/runtime/refusal.h"
#include "node/runtime/step_names.h"
#include "radix/base/units.h"

#ifndef PANDO_VERSION
#define PANDO_VERSION "unknown"
#endif

namespace pando::runtime {
namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kSecretBytesMax = 4096;
constexpr size_t kReasonBytesMax = 300;  // of the parser's words, which repeat what it read
constexpr int64_t kDrainTimeoutMax = 3'600'000;

// The values as they were written; Validate makes Options of them.
struct Written {
  std::string host_slab = "1GiB";
  std::string space_share = "0.8";
  std::string metrics_listen;
  std::string log_level = "info";
  std::string drain_timeout = "5000";
  std::string pause_at;
  WrittenCluster cluster;
};

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

void RemoveUnixPrefix(std::string* path) {
  constexpr std::string_view kPrefix = "unix:";
  if (path->compare(0, kPrefix.size(), kPrefix) == 0) path->erase(0, kPrefix.size());
}

std::string CheckName(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kNameBytesMax &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return "";
  }
  return Refusal("--name", name,
                 "1 to " + std::to_string(kNameBytesMax) + " letters, digits, '.', '_', '-'");
}

// Paths are printed in lines that others parse.
std::string CheckPath(const std::string& key, const std::string& path) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (!path.empty() && std::none_of(path.begin(), path.end(), control)) return "";
  return Refusal(key, path, "a path, without newlines and other control characters");
}

std::string CheckPaths(const Options& options) {
  if (std::string wrong = CheckPath("--socket", options.socket); !wrong.empty()) return wrong;
  if (std::string wrong = CheckPath("--admin", options.admin); !wrong.empty()) return wrong;
  // Where one cannot be looked up, its listener says why.
  const auto resolved = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::weakly_canonical(path, error);
    return error ? std::filesystem::path(path).lexically_normal() : found;
  };
  if (resolved(options.admin) == resolved(options.socket)) {
    return Refusal("--admin", options.admin, "a path other than --socket's; say another");
  }
  return "";
}

std::string ReadSlab(const Written& written, Options* out) {
  const std::optional<Bytes> bytes = ParseBytes(written.host_slab);
  if (!bytes || *bytes < kExtentBytes) {
    return Refusal("--host-slab", written.host_slab,
                   "a size such as 2GiB, at least one extent (" + FormatBytes(kExtentBytes) + ")");
  }
  out->host_slab = Bytes(bytes->value() / kExtentBytes.value() * kExtentBytes.value());
  return "";
}

std::string ReadShare(const Written& written, Options* out) {
  const std::optional<double> share = ParseNumber<double>(written.space_share);
  if (!share || !(*share > 0) || *share > 1) {
    return Refusal("--space-share", written.space_share, "a number above 0, at most 1");
  }
  out->space_share = *share;
  return "";
}

std::string ReadSecret(Options* out) {
  if (out->key_secret_file.empty()) return "";
  if (std::string wrong = CheckPath("--key-secret", out->key_secret_file); !wrong.empty()) {
    return wrong;
  }
  if (const std::string why = WhyNoFile(out->key_secret_file); !why.empty()) {
    return "--key-secret: found " + why + "; allowed: a regular file that can be read";
  }
  std::ifstream file(out->key_secret_file, std::ios::binary);
  std::string bytes(kSecretBytesMax + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (!bytes.empty() && bytes.back() == '\n') bytes.pop_back();  // an editor's
  if (!bytes.empty() && bytes.size() <= kSecretBytesMax) {
    out->key_secret = std::move(bytes);
    return "";
  }
  return Refusal("--key-secret", out->key_secret_file,
                 "a file of 1 to " + std::to_string(kSecretBytesMax) + " bytes");
}

// "HOST:PORT", "[V6]:PORT", ":PORT" and "PORT"; loopback where no host is said.
std::string ReadMetrics(const Written& written, Options* out) {
  const std::string& text = written.metrics_listen;
  if (text.empty()) return "";
  const size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const std::optional<int> number = ParseNumber<int>(port);
  if (!number || *number < 0 || *number > 65535) {
    return Refusal("--metrics-listen", text,
                   "HOST:PORT, or PORT on 127.0.0.1, with a port of 0 (any) to 65535");
  }
  out->metrics_host = host.empty() ? "127.0.0.1" : host;
  out->metrics_port = *number;
  return "";
}

std::string ReadLevel(const Written& written, Options* out) {
  constexpr std::array<std::pair<std::string_view, LogLine::Level>, 4> kLevels = {{
      {"debug", LogLine::Level::kDebug},
      {"info", LogLine::Level::kInfo},
      {"warning", LogLine::Level::kWarning},
      {"error", LogLine::Level::kError},
  }};
  for (const auto& [name, level] : kLevels) {
    if (name != written.log_level) continue;
    out->log_level = level;
    return "";
  }
  return Refusal("--log-level", written.log_level, "debug, info, warning, error");
}

std::string ReadDrain(const Written& written, Options* out) {
  const std::optional<int64_t> millis = ParseNumber<int64_t>(written.drain_timeout);
  if (!millis || *millis < 0 || *millis > kDrainTimeoutMax) {
    return Refusal("--drain-timeout", written.drain_timeout,
                   "milliseconds, 0 to " + std::to_string(kDrainTimeoutMax));
  }
  out->drain_timeout_ms = *millis;
  return "";
}

std::string ReadPause(const Written& written, Options* out) {
  if (written.pause_at.empty()) return "";
  const size_t colon = written.pause_at.rfind(':');
  const std::string step = written.pause_at.substr(0, colon);
  const std::optional<uint64_t> count =
      colon == std::string::npos ? 1 : ParseNumber<uint64_t>(written.pause_at.substr(colon + 1));
  if (!IsStep(step) || !count || *count == 0) {
    return Refusal("--pause-at", written.pause_at,
                   "STEP or STEP:N, with a step that --list-steps prints and N from 1");
  }
  out->pause_at = step;
  out->pause_count = *count;
  return "";
}

// Empty, or the first thing that is wrong.
std::string Validate(const Written& written, Options* out) {
  RemoveUnixPrefix(&out->socket);
  RemoveUnixPrefix(&out->admin);
  if (out->admin.empty()) {
    out->admin = (std::filesystem::path(out->socket).parent_path() / "admin.sock").string();
  }
  if (std::string wrong = CheckPaths(*out); !wrong.empty()) return wrong;
  if (std::string wrong = CheckName(out->name); !wrong.empty()) return wrong;
  for (const auto read : {ReadSlab, ReadShare, ReadMetrics, ReadLevel, ReadDrain, ReadPause}) {
    if (std::string wrong = read(written, out); !wrong.empty()) return wrong;
  }
  if (std::string wrong = ReadCluster(written.cluster, &out->cluster); !wrong.empty()) return wrong;
  return ReadSecret(out);
}

void Declare(CLI::App* app, Written* written, Options* out) {
  app->set_version_flag("--version", std::string("pando-node ") + PANDO_VERSION);
  app->set_config("--config", "", "File with the same names as the flags: name = \"a\" (TOML, INI)")
      ->check(CheckConfigFile);
  app->config_formatter(StrictConfig());
  app->allow_config_extras(CLI::config_extras_mode::error);
  // A flag that is said twice counts as said last, so that a wrapper's can be overridden.
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app->add_option("--name", out->name, "This node's name")->capture_default_str();
  app->add_option("--socket", out->socket, "Unix socket for engines")->capture_default_str();
  app->add_option("--admin", out->admin,
                  "Unix socket for pandoctl [admin.sock beside the engines' socket]");
  app->add_option("--host-slab", written->host_slab,
                  "Host memory for pages: a size such as 2GiB, in steps of 64 MiB")
      ->capture_default_str();
  app->add_option("--space-share", written->space_share,
                  "What one space may have of all extents, above 0, at most 1")
      ->capture_default_str();
  app->add_option("--key-secret", out->key_secret_file, "File with the cluster's key secret");
  app->add_option("--metrics-listen", written->metrics_listen,
                  "HOST:PORT for /metrics, /healthz, /readyz [off]; no host is 127.0.0.1");
  DeclareCluster(app, &written->cluster);
  app->add_option("--log-level", written->log_level, "debug, info, warning or error")
      ->capture_default_str();
  app->add_option("--drain-timeout", written->drain_timeout,
                  "Milliseconds that running claims get at SIGTERM")
      ->capture_default_str();
  app->add_flag("--list-steps", out->list_steps, "Print the names of all steps")
      ->configurable(false);
  app->add_option("--pause-at", written->pause_at,
                  "STEP[:N]: stop the process (SIGSTOP) when the step is reached for the Nth time");
}

std::string AllowedKeys(const CLI::App& app) {
  std::string keys;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_configurable() || option->get_lnames().empty()) continue;
    if (!keys.empty()) keys += ", ";
    keys += option->get_lnames().front();
  }
  return keys;
}

}  // namespace

std::variant<Options, Exit> ParseOptions(int argc, const char* const* argv) {
  Options options;
  Written written;
  CLI::App app("The node of a host: one cache of KV pages for all inference replicas on it.",
               "pando-node");
  Declare(&app, &written, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& error) {
    return Exit{kExitConfig, "--config: " + Quotable(error.what(), kReasonBytesMax) +
                                 "; allowed keys: " + AllowedKeys(app) + "\n"};
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = app.exit(error, text, text);
    if (code == 0) return Exit{0, text.str()};
    return Exit{kExitConfig, Quotable(error.what(), kReasonBytesMax) + "; see --help\n"};
  }
  if (options.list_steps) return options;
  if (const std::string wrong = Validate(written, &options); !wrong.empty()) {
    return Exit{kExitConfig, wrong + "\n"};
  }
  return options;
}

std::vector<std::pair<std::string, std::string>> Describe(const Options& options) {
  const bool http = !options.metrics_host.empty();
  std::vector<std::pair<std::string, std::string>> fields = {
      {"name", options.name},
      {"socket", options.socket},
      {"admin", options.admin},
      {"host_slab", std::to_string(options.host_slab.value())},
      {"space_share", std::to_string(options.space_share)},
      {"key_secret", options.key_secret.empty() ? "unset" : "set"},
      {"metrics_listen",
       http ? options.metrics_host + ":" + std::to_string(options.metrics_port) : "off"},
      {"drain_timeout_ms", std::to_string(options.drain_timeout_ms)},
      {"pause_at", options.pause_at.empty() ? "off" : options.pause_at},
  };
  DescribeCluster(options.cluster, &fields);
  return fields;
}

}  // namespace pando::runtime
