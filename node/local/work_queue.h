// Work that other threads hand to the owner thread.
//
//   other thread   queue.Post(work)            false: full, or closed
//                  queue.RunAndWait(work, 1s)  false: it did not run, and never will
//   owner thread   fd() is readable ──► RunAll()
//
// Invariants:
//  1. At most `capacity` works wait; one that was refused has no effect.
//  2. After RunAndWait has returned, its work does not run any more: it may borrow the caller's
//     stack.
//
// Threads: Post and RunAndWait any thread but the owner's; the rest the owner thread.
#ifndef PANDO_NODE_LOCAL_WORK_QUEUE_H_
#define PANDO_NODE_LOCAL_WORK_QUEUE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "transfer/memory/unique_fd.h"

namespace pando::local {

class WorkQueue {
 public:
  explicit WorkQueue(size_t capacity);

  bool Post(std::function<void()> work);
  bool RunAndWait(const std::function<void()>& work, std::chrono::milliseconds timeout);

  // Readable while work waits.
  int fd() const { return event_.get(); }
  void RunAll();
  // Drops what waits and refuses all that comes; those who wait are told.
  void Close();

 private:
  const size_t capacity_;
  UniqueFd event_;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;  // guarded by mutex_
  bool closed_ = false;                         // guarded by mutex_
  std::vector<std::function<void()>> running_;  // owner thread; keeps its capacity
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_WORK_QUEUE_H_
