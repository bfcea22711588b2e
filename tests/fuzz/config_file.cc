// pando-node's options: from a file, or as flags.
//
// input = {0: a file, else flags, one a line: u8} + text
#include <sstream>
#include <string>
#include <vector>

#include "node/runtime/options.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/targets.h"

namespace pando::fuzz {
namespace {

using runtime::Exit;
using runtime::Options;

void Check(const Options& options) {
  PANDO_CHECK(options.host_slab >= kExtentBytes &&
              options.host_slab.value() % kExtentBytes.value() == 0)
      << "a slab of " << options.host_slab << " bytes";
  PANDO_CHECK(options.space_share > 0 && options.space_share <= 1) << options.space_share;
  PANDO_CHECK(!options.name.empty() && !options.socket.empty() && !options.admin.empty() &&
              options.admin != options.socket)
      << "a node without a name or a path";
  PANDO_CHECK(options.metrics_port >= 0 && options.metrics_port <= 65535) << options.metrics_port;
  PANDO_CHECK(options.drain_timeout_ms >= 0) << options.drain_timeout_ms;
  for (const auto& [name, value] : runtime::Describe(options)) {
    PANDO_CHECK(!name.empty() && !value.empty()) << "option " << name << " is described as nothing";
  }
}

void Parse(const std::vector<std::string>& args) {
  std::vector<const char*> argv = {"pando-node"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  const auto result = runtime::ParseOptions(static_cast<int>(argv.size()), argv.data());
  if (const auto* exit = std::get_if<Exit>(&result)) {
    PANDO_CHECK((exit->code == 0 || exit->code == runtime::kExitConfig) && !exit->text.empty())
        << "exit status " << exit->code << " without a word";
    return;
  }
  const auto& options = std::get<Options>(result);
  if (!options.list_steps) Check(options);
}

}  // namespace

void ConfigFile(Input input) {
  if (input.empty()) return;
  const Input text = input.subspan(1);
  if (input[0] == 0) {
    const InputFile file(text);
    return Parse({"--config", file.path()});
  }
  std::istringstream lines(std::string(text.begin(), text.end()));
  std::vector<std::string> args;
  for (std::string line; std::getline(lines, line);)
    args.push_back(line.substr(0, line.find('\0')));
  Parse(args);
}

}  // namespace pando::fuzz
