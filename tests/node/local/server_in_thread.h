// A SessionServer over a real core and a real socket, with its owner thread: a node without the
// process around it.
#ifndef PANDO_TESTS_NODE_LOCAL_SERVER_IN_THREAD_H_
#define PANDO_TESTS_NODE_LOCAL_SERVER_IN_THREAD_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "node/core/node_core.h"
#include "node/local/event_loop.h"
#include "node/local/session_server.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

class ServerInThread {
 public:
  static constexpr uint64_t kBootId = 4711;

  // `extents` memfds of 64 MiB that nobody has populated.
  explicit ServerInThread(uint32_t extents = 1, SessionServer::Options options = {});
  ~ServerInThread();

  const std::string& path() const { return path_; }
  CoreStatus status();
  std::string SelfCheck();
  // Waits until `good` says so of the core's status; false at the deadline.
  bool WaitFor(const std::function<bool(const CoreStatus&)>& good);
  // How many log lines there were with this event.
  size_t Logged(const std::string& event);
  // The most steps that the core took in one turn of the loop.
  uint64_t StepsInOneTurn();

 private:
  std::string folder_, path_;
  EventLoop loop_;
  NodeCore core_;
  std::vector<UniqueFd> extents_;
  std::unique_ptr<SessionServer> server_;
  uint64_t steps_ = 0, steps_in_one_turn_ = 0;  // the loop's thread
  std::mutex mutex_;
  std::vector<LogLine> lines_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pando::local

#endif  // PANDO_TESTS_NODE_LOCAL_SERVER_IN_THREAD_H_
