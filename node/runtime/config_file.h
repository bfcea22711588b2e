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

// Empty, or why `path` cannot be read as a file.
std::string CheckConfigFile(const std::string& path);

// What CLI11 would take in silence and not as it was meant is a CLI::ConfigError that says what was
// found and what is allowed: a key twice, several values, a section, a quote that does not end,
// bytes that are no text.
std::shared_ptr<CLI::Config> StrictConfig();

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_CONFIG_FILE_H_
