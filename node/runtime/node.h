// A whole node: everything that main builds, and its life.
//
//   Create   sockets bound, admin and HTTP serve, the slab begins to grow
//   Run      owner thread: sessions are served; ready once the slab is there
//   SIGTERM  drain: no new claims, running ones may end until the deadline; then Run returns
//
// Threads: Create, Run and the destructor on one thread, the owner.
#ifndef PANDO_NODE_RUNTIME_NODE_H_
#define PANDO_NODE_RUNTIME_NODE_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "node/control/admin_server.h"
#include "node/core/node_core.h"
#include "node/local/event_loop.h"
#include "node/local/session_server.h"
#include "node/runtime/admin_listener.h"
#include "node/runtime/cluster.h"
#include "node/runtime/http_server.h"
#include "node/runtime/log.h"
#include "node/runtime/options.h"
#include "node/runtime/slab_populator.h"
#include "radix/base/steps.h"
#include "transfer/memory/host_slab.h"

namespace pando::runtime {

class Node {
 public:
  // `log` and (unless null) `steps` outlive the node, and so does `signals`, an eventfd that counts
  // the signals to end. An error is the configuration's: a path, a port or a size that cannot be
  // had.
  static absl::StatusOr<std::unique_ptr<Node>> Create(Options options, Log* log, int signals,
                                                      StepListener* steps);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Until a signal and its drain. The process's exit status.
  int Run();
  // All threads have ended, and nobody is served. What is left to the destructor is to give the
  // slab back, which takes the kernel a third of a second a GiB.
  void End();

 private:
  Node(Options options, Log* log, int signals, StepListener* steps);
  absl::Status Start();
  absl::Status ServeAdmin();
  absl::Status ServeHttp();
  absl::Status JoinCluster();
  void Populate();

  // Where it is mapped; empty: it is not.
  std::span<std::byte> AddExtent(HostExtent extent);
  void SlabDone(uint64_t made, const absl::Status& status);
  void SayReady();
  void OnSignal();
  void Drain();
  void StopIfDrained();
  void Stop(const char* why);
  std::optional<std::string> Metrics();
  bool OnOwner(const std::function<void()>& work);
  void Reached(std::string_view step) {
    if (steps_ != nullptr) steps_->Reached(step);
  }

  const Options options_;
  Log* const log_;
  StepListener* const steps_;
  const control::NodeFacts facts_;
  std::atomic<bool> ready_ = false;
  bool draining_ = false, stopped_ = false, ended_ = false;
  int exit_code_ = 0;

  local::EventLoop loop_;
  const int signals_;
  local::EventLoop::WatchId signal_watch_ = local::EventLoop::WatchId::kNone;
  NodeCore core_;
  std::vector<HostExtent> extents_;  // by ExtentId; outlive the server, which lends their fds
  std::unique_ptr<local::SessionServer> server_;
  std::unique_ptr<control::AdminServer> admin_;
  std::unique_ptr<AdminListener> admin_listener_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Cluster> cluster_;  // null: there is none
  std::unique_ptr<SlabPopulator> populator_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_NODE_H_
