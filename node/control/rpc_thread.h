// One thread on which everything happens that concerns the calls of one side of gRPC.
//
//   gRPC   operation is over ──► its tag's `happened`   ┐
//   owner  Post(work) ─────────► work                   ├─ one after another, on the one thread
//
// So a call needs no lock, and whoever posts never waits. It sleeps when there is nothing to do:
// gRPC's own callback threads wake up every second and may be asleep for 100 ms when a call comes.
//
// Invariants:
//  1. Works run in the order in which they were posted; after Close none runs.
//  2. A tag stays where it is until it has happened.
//
// Threads: Post any; Close and the destructor one that is not this thread.
#ifndef PANDO_NODE_CONTROL_RPC_THREAD_H_
#define PANDO_NODE_CONTROL_RPC_THREAD_H_

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace pando::control {

class RpcThread {
 public:
  struct Tag {
    std::function<void(bool ok)> happened;
  };

  explicit RpcThread(std::unique_ptr<grpc::CompletionQueue> queue);
  ~RpcThread();
  RpcThread(const RpcThread&) = delete;
  RpcThread& operator=(const RpcThread&) = delete;

  // Operations are started on this, with a Tag*.
  grpc::CompletionQueue* queue() { return queue_.get(); }

  void Post(std::function<void()> work);
  // Ends the thread when the tags of all operations have come; none may be started any more.
  void Close();

 private:
  void Run();
  void RunWorks();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  Tag wake_;
  grpc::Alarm alarm_;  // set when the first work comes, until `wake_` happens

  std::mutex mutex_;  // guards the rest
  std::vector<std::function<void()>> works_;
  bool closed_ = false;

  std::thread thread_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_RPC_THREAD_H_
