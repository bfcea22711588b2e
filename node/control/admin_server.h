// The admin service (proto/pando/v1/admin.proto), by gRPC, over connections that it is given.
//
//   gRPC thread: request ──► run_on_owner(read the core) ──► translate ──► answer
//
// It decides nothing: its few threads only translate, and whatever looks at the core runs on the
// owner thread. A node that is too busy to answer in time is UNAVAILABLE. Thread-safe.
#ifndef PANDO_NODE_CONTROL_ADMIN_SERVER_H_
#define PANDO_NODE_CONTROL_ADMIN_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "node/core/node_core.h"
#include "radix/base/ids.h"

namespace pando::control {

// What does not change in one life of the node.
struct NodeFacts {
  BootId boot_id;
  std::string name, version;
  Nanos started = 0;  // CLOCK_MONOTONIC
  Bytes slab;         // configured
};

class AdminServer {
 public:
  struct Source {
    // Runs its argument on the owner thread and waits; false: it did not run and never will.
    std::function<bool(const std::function<void()>&, std::chrono::milliseconds)> run_on_owner;
    const NodeCore* core = nullptr;  // touched only in run_on_owner
    std::function<bool()> ready;     // any thread
    NodeFacts facts;
  };

  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(Source source);
  // Takes a connected socket over, which does not block.
  void Serve(int socket);
  // Waits for the calls that run, a moment at most.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

 private:
  struct Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_ADMIN_SERVER_H_
