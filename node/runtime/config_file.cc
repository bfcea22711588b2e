#include "node/runtime/config_file.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "node/core/problem.h"

namespace pando::runtime {
namespace {

constexpr size_t kConfigBytesMax = 1u << 20;
constexpr size_t kKeyBytesMax = 64;  // so that no message repeats a long line

class Strict final : public CLI::ConfigBase {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::string text(kConfigBytesMax + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(input.gcount()));
    if (text.size() > kConfigBytesMax) {
      throw CLI::ConfigError("found a file that is larger; allowed: at most " +
                             std::to_string(kConfigBytesMax) + " bytes");
    }
    const auto binary = [](char c) {
      return (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t') ||
             c == '\x7f';
    };
    if (std::any_of(text.begin(), text.end(), binary)) {
      throw CLI::ConfigError("found a file that is no text; allowed: lines such as name = \"a\"");
    }
    std::istringstream again(text);
    std::vector<CLI::ConfigItem> read = CLI::ConfigBase::from_config(again);
    std::set<std::string> seen;
    for (const CLI::ConfigItem& item : read) Check(item, &seen);
    return read;
  }

 private:
  static void Check(const CLI::ConfigItem& item, std::set<std::string>* seen) {
    if (item.name == "++" || item.name == "--") {
      throw CLI::ConfigError("found a section [" + Quotable(CLI::detail::join(item.parents, ".")) +
                             "]; allowed: none, all keys stand at the top");
    }
    const std::string key = Quotable(item.fullname());
    if (item.fullname().size() > kKeyBytesMax) {
      throw CLI::ConfigError("found the key " + key + "; allowed: keys of at most " +
                             std::to_string(kKeyBytesMax) + " bytes");
    }
    // Twice in a row reads as two values.
    if (!seen->insert(key).second || item.inputs.size() != 1) {
      throw CLI::ConfigError(key +
                             ": found several values, or the key twice; allowed: one value, " +
                             "in quotes if it has spaces or commas");
    }
    const std::string& value = item.inputs.front();
    if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
      throw CLI::ConfigError(key + ": found " + Quotable(value) + ", a quote that does not end; " +
                             "allowed: \"a value\" (a # in it begins a comment)");
    }
  }
};

}  // namespace

std::string WhyNoFile(const std::string& path) {
  if (path.empty()) return "an empty path";
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::directory) return "a directory, " + Quotable(path);
  if (::access(path.c_str(), R_OK) != 0) return Quotable(path) + ", " + std::strerror(errno);
  if (type == std::filesystem::file_type::regular) return "";
  return Quotable(path) + ", a pipe, a device or a socket";
}

std::string CheckConfigFile(const std::string& path) {
  const std::string why = WhyNoFile(path);
  if (why.empty()) return "";
  return "found " + why +
         "; allowed: a regular file that can be read; create it, or leave --config out";
}

std::shared_ptr<CLI::Config> StrictConfig() {
  return std::make_shared<Strict>();
}

}  // namespace pando::runtime
