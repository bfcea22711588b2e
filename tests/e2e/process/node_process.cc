#include "tests/e2e/process/node_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/paths.h"

namespace pando::e2e {

std::string BinaryPath(const std::string& name) {
  return PANDO_BIN_DIR "/" + name;
}

NodeProcess::NodeProcess(std::vector<std::string> more_flags, std::string slab)
    : slab_(std::move(slab)) {
  std::string pattern = std::filesystem::temp_directory_path() / "pando-test-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  EXPECT_TRUE(Start(more_flags)) << "pando-node does not become ready";
}

NodeProcess::~NodeProcess() {
  child_.reset();
  std::filesystem::remove_all(folder_);
}

bool NodeProcess::Restart(std::vector<std::string> more_flags) {
  child_.reset();
  return Start(more_flags);
}

bool NodeProcess::Start(const std::vector<std::string>& more_flags) {
  const bool named = std::find(more_flags.begin(), more_flags.end(), "--name") != more_flags.end();
  std::vector<std::string> argv = {BinaryPath("pando-node"),
                                   "--socket",
                                   socket(),
                                   "--admin",
                                   admin(),
                                   "--host-slab",
                                   slab_,
                                   "--log-level",
                                   "debug"};
  if (!named) argv.insert(argv.end(), {"--name", "test"});
  argv.insert(argv.end(), more_flags.begin(), more_flags.end());
  child_ = std::make_unique<Child>(argv);
  paused_ = false;
  while (std::optional<std::string> line = child_->ReadLine(Now() + 60 * kSecond)) {
    paused_ = line->starts_with("paused");
    if (paused_ || line->starts_with("pando-node ready")) return true;
  }
  return false;
}

nlohmann::json NodeProcess::Status() const {
  const std::optional<std::string> text = RunToEnd(
      {BinaryPath("pandoctl"), "--admin", admin(), "status", "--json"}, Now() + 30 * kSecond);
  if (!text) return nullptr;
  return nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
}

std::string NodeProcess::WaitBase(int64_t deadline) const {
  std::string left;
  for (;;) {
    const nlohmann::json status = Status();
    left.clear();
    if (!status.is_object()) {
      left = "no status";
    } else {
      for (const char* name :
           {"leases", "reservations", "holds", "tickets", "grants", "sessions", "replicas"}) {
        const uint64_t count = status.value(name, 0ull);
        if (count != 0) left += std::string(name) + "=" + std::to_string(count) + " ";
      }
      for (const char* name : {"reserved", "held", "receiving", "quarantined"}) {
        const uint64_t count = status["pages"].value(name, 0ull);
        if (count != 0) left += std::string("pages.") + name + "=" + std::to_string(count) + " ";
      }
    }
    if (left.empty() || Now() >= deadline) return left;
    poll(nullptr, 0, 10);
  }
}

std::string NodeProcess::WaitFor(const std::string& path, uint64_t value, int64_t deadline) const {
  for (;;) {
    const nlohmann::json status = Status();
    const nlohmann::json::json_pointer pointer(path);
    if (status.is_object() && status.contains(pointer) && status[pointer] == value) return "";
    if (Now() >= deadline) return status.dump();
    poll(nullptr, 0, 10);
  }
}

bool NodeProcess::SelfCheck() const {
  return RunToEnd({BinaryPath("pandoctl"), "--admin", admin(), "--timeout", "60", "check"},
                  Now() + 70 * kSecond)
      .has_value();
}

}  // namespace pando::e2e
