#include "node/control/rpc_thread.h"

#include <grpc/support/time.h>

#include <utility>

namespace pando::control {

RpcThread::RpcThread(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), wake_{[this](bool) { RunWorks(); }}, thread_([this] { Run(); }) {}

RpcThread::~RpcThread() {
  Close();
}

void RpcThread::Post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  works_.push_back(std::move(work));
  if (works_.size() == 1) alarm_.Set(queue_.get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), &wake_);
}

void RpcThread::RunWorks() {
  std::vector<std::function<void()>> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(works_);
  }
  for (const std::function<void()>& work : works) work();
}

void RpcThread::Close() {
  std::vector<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    dropped.swap(works_);
    queue_->Shutdown();
  }
  thread_.join();
}

void RpcThread::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Tag*>(tag)->happened(ok);
}

}  // namespace pando::control
