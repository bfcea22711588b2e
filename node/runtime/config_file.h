// The file that --config names: TOML or INI, read by CLI11, without its leniency. Stateless; any
// thread.
#ifndef PANDO_NODE_RUNTIME_CONFIG_FILE_H_
#define PANDO_NODE_RUNTIME_CONFIG_FILE_H_

#include <memory>
#include <string>

namespace CLI {
class Config;
}

namespace pando::runtime {

// Empty, or what `path` is instead of a regular file that can be read: a pipe may never end, and
// hold up the start for ever.
std::string WhyNoFile(const std::string& path);

// Empty, or why --config is refused.
std::string CheckConfigFile(const std::string& path);

// What CLI11 would take in silence and not as it was meant is a CLI::ConfigError that says what was
// found and what is allowed: a key twice, several values, a section, a quote that does not end,
// bytes that are no text, more than 1 MiB.
std::shared_ptr<CLI::Config> StrictConfig();

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_CONFIG_FILE_H_
