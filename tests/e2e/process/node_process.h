// A real pando-node as a child process, in a folder of its own. One thread.
#ifndef PANDO_TESTS_E2E_PROCESS_NODE_PROCESS_H_
#define PANDO_TESTS_E2E_PROCESS_NODE_PROCESS_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/process/child.h"

namespace pando::e2e {

class NodeProcess {
 public:
  // Starts a node, named "test" unless the flags name it, with a slab of `slab` and waits until it
  // is ready, or stopped at --pause-at before.
  explicit NodeProcess(std::vector<std::string> more_flags = {}, std::string slab = "128MiB");
  ~NodeProcess();

  std::string socket() const { return folder_ + "/node.sock"; }
  std::string admin() const { return "unix:" + folder_ + "/admin.sock"; }
  Child& child() { return *child_; }
  // It stopped itself before it was ready.
  bool paused() const { return paused_; }

  // Starts it again in the same folder (after it ended); true when ready.
  bool Restart(std::vector<std::string> more_flags = {});
  // `pandoctl status --json`; null if the node does not answer in 5 s.
  nlohmann::json Status() const;
  // Waits until nobody is attached, nothing is claimed, held, reserved or quarantined. Empty, or
  // what is left.
  std::string WaitBase(int64_t deadline) const;
  // Waits until `path` (a JSON pointer into Status) has `value`. Empty, or what was there last.
  std::string WaitFor(const std::string& path, uint64_t value, int64_t deadline) const;
  // `pandoctl check`: true if the node's own recount finds nothing.
  bool SelfCheck() const;

 private:
  bool Start(const std::vector<std::string>& more_flags);

  std::string folder_;
  std::string slab_;
  std::unique_ptr<Child> child_;
  bool paused_ = false;
};

std::string BinaryPath(const std::string& name);

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_PROCESS_NODE_PROCESS_H_
