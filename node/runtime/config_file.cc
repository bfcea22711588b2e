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

class Strict final : public CLI::ConfigBase {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string text(std::istreambuf_iterator<char>(input), {});
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

std::string CheckConfigFile(const std::string& path) {
  std::error_code ignored;
  std::string why;
  if (path.empty()) {
    why = "an empty path";
  } else if (std::filesystem::is_directory(path, ignored)) {
    why = "a directory, " + Quotable(path);
  } else if (::access(path.c_str(), R_OK) != 0) {
    why = Quotable(path) + ", " + std::strerror(errno);
  }
  if (why.empty()) return "";
  return "found " + why + "; allowed: a file that can be read; create it, or leave --config out";
}

std::shared_ptr<CLI::Config> StrictConfig() {
  return std::make_shared<Strict>();
}

}  // namespace pando::runtime
