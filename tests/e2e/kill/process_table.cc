#include "tests/e2e/kill/process_table.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace pando::e2e {
namespace {

struct Entry {
  std::string name;
  char state = 0;
  pid_t parent = 0;
};

std::optional<Entry> Read(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Entry entry{.name = line.substr(open + 1, close - open - 1)};
  std::istringstream(line.substr(close + 1)) >> entry.state >> entry.parent;
  return entry;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& name) {
  std::vector<pid_t> children;
  for (const auto& folder : std::filesystem::directory_iterator("/proc")) {
    const std::string number = folder.path().filename();
    if (std::isdigit(static_cast<unsigned char>(number[0])) == 0) continue;
    const pid_t pid = std::stoi(number);
    const std::optional<Entry> entry = Read(pid);
    if (!entry || entry->parent != parent || entry->state == 'Z') continue;
    if (name.empty() || entry->name == name.substr(0, 15)) children.push_back(pid);
  }
  return children;
}

bool Lives(pid_t pid) {
  const std::optional<Entry> entry = Read(pid);
  return entry && entry->state != 'Z';
}

size_t DescriptorsOf(pid_t pid) {
  std::error_code gone;
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd", gone);
  return gone ? 0 : static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool MapsNamedMemory(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/shm/") != std::string::npos) return true;
  }
  return false;
}

}  // namespace pando::e2e
