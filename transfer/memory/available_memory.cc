#include "transfer/memory/available_memory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "transfer/memory/host_slab.h"

namespace pando {
namespace internal {
namespace {

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The first word of a file; empty if there is none.
std::string FirstWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "MemAvailable:   24335 kB" and the like.
absl::StatusOr<Bytes> MachineAvailable(const std::string& meminfo) {
  std::ifstream file(meminfo);
  if (!file) {
    return absl::InternalError(meminfo + ": " + std::strerror(errno) +
                               ": cannot tell how much memory is left");
  }
  std::string name;
  uint64_t kib = 0;
  std::string rest;
  while (file >> name >> kib && std::getline(file, rest)) {
    if (name == "MemAvailable:") return Bytes(kib << 10);
  }
  return absl::InternalError(meminfo + " has no MemAvailable: cannot tell how much memory is left");
}

// A line of memory.stat: clean file pages that the kernel drops before it kills.
uint64_t StatOf(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) {
    if (name == wanted) return value;
  }
  return 0;
}

// What one cgroup leaves; nullopt: it sets no limit.
std::optional<uint64_t> GroupLeaves(const std::string& folder) {
  std::optional<uint64_t> limit;
  for (const char* name : {"/memory.max", "/memory.high"}) {
    const std::optional<uint64_t> value = ParseNumber(FirstWord(folder + name));  // or "max"
    if (value) limit = std::min(limit.value_or(UINT64_MAX), *value);
  }
  if (!limit) return std::nullopt;
  const uint64_t current = ParseNumber(FirstWord(folder + "/memory.current")).value_or(0);
  const uint64_t reclaimable = std::min(current, StatOf(folder + "/memory.stat", "inactive_file"));
  const uint64_t used = current - reclaimable;
  return *limit > used ? *limit - used : 0;
}

// The path of the process in the v2 hierarchy ("0::/a/b"); empty if it is in none.
std::string GroupPath(const std::string& self_cgroup) {
  std::ifstream file(self_cgroup);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "";
}

}  // namespace

absl::StatusOr<Bytes> AvailableMemoryFrom(const MemoryFiles& files) {
  const absl::StatusOr<Bytes> machine = MachineAvailable(files.meminfo);
  if (!machine.ok()) return machine.status();
  uint64_t left = machine->value();
  // From the process's own group up to the root; a path that a container cannot see has no files.
  std::string path = GroupPath(files.self_cgroup);
  while (true) {
    while (path.ends_with('/')) path.pop_back();
    left = std::min(left, GroupLeaves(files.cgroup_root + path).value_or(UINT64_MAX));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) break;
    path.resize(slash);
  }
  return Bytes(left);
}

}  // namespace internal

absl::StatusOr<Bytes> AvailableMemory() {
  return internal::AvailableMemoryFrom({});
}

}  // namespace pando
