// A worker's thread of copies. It owns the worker's session and never needs the interpreter, so
// that an engine that computes in Python beside it does not hold it up.
//
//   engine's thread   Submit(tag, job) ──► loads, then stores ──► CopyJob::Execute ──► ended
//                     TakeEnded        ◄────────────────────────────────────────────────┘
//
// Invariants:
//  1. Each job that was submitted ends once, and in the order of its kind; Close ends those that
//  wait. What is submitted after Close ends at once, as lost.
//  2. A load does not wait for more than the one copy that runs.
//  3. No job is destroyed on the thread, or under the lock.
//  4. A fork's child has no such thread, and what a lock guards is as the fork found it: there
//  nothing takes one. The state is kForked, nothing is taken, nothing has ended.
//
// While it has no job it touches what it has mapped of the node, for the first time: so the copies
// to come need not.
//
// Threads: all but the constructor and the destructor are for any.
#ifndef PANDO_CLIENT_PYTHON_COPY_THREAD_H_
#define PANDO_CLIENT_PYTHON_COPY_THREAD_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/python/copy_job.h"
#include "transfer/memory/unique_fd.h"

namespace pando::python {

struct EndedCopy {
  uint64_t tag = 0;
  CopyResult result;
  int64_t in_all_ns = 0;  // since it was submitted
  // So that the last one who names the job is whoever takes this: Python's objects end under the
  // interpreter's lock.
  std::shared_ptr<CopyJob> job;
};

class CopyThread {
 public:
  // A copy may take `copy_ns` from its Submit on, each answer of the node `call_ns`.
  CopyThread(client::Options options, int64_t copy_ns, int64_t call_ns);
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  ~CopyThread();

  // False: this is a fork's child.
  [[nodiscard]] bool Submit(uint64_t tag, std::shared_ptr<CopyJob> job, bool load);
  std::vector<EndedCopy> TakeEnded();
  // Stops all copies and ends the session. Waits for what the node may still take to answer, as
  // does whoever else closes meanwhile.
  void Close();

  // The session's, as the thread last saw it.
  client::State state() const;
  std::string last_error() const;

 private:
  struct Waiting {
    uint64_t tag = 0;
    std::shared_ptr<CopyJob> job;
    int64_t submitted_ns = 0;
  };

  bool forked() const;
  void Run();
  // False: all ends.
  bool Next(Waiting* next);
  void Look();
  void Sleep();
  void Wake() const;

  const std::unique_ptr<client::Client> client_;  // the thread's
  const int64_t copy_ns_, call_ns_;
  const UniqueFd wake_;
  const pid_t process_;
  std::atomic<bool> left_to_parent_ = false;  // by a fork's child

  mutable std::mutex mutex_;  // guards the rest
  std::deque<Waiting> loads_, stores_;
  std::shared_ptr<CopyJob> running_;
  std::vector<EndedCopy> ended_;
  bool closing_ = false;
  client::State state_ = client::State::kDisconnected;
  std::string last_error_;

  std::mutex close_mutex_;  // guards the end of thread_; taken before mutex_
  std::thread thread_;
};

}  // namespace pando::python

#endif  // PANDO_CLIENT_PYTHON_COPY_THREAD_H_
