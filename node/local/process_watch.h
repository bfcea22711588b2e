// The life lines of the engine processes: one pidfd a process, however many sessions it opens.
//
// A process that is seen under a pid whose pidfd has not fired is the same process, since a pid is
// not given away while its process lives: its further pidfds are closed. (A pid that cannot be seen
// from here, in another process namespace, has one watch a session.) It is watched as long as one
// of its sessions was not removed, and costs no descriptor afterwards.
//
// Owner thread.
#ifndef PANDO_NODE_LOCAL_PROCESS_WATCH_H_
#define PANDO_NODE_LOCAL_PROCESS_WATCH_H_

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "node/local/event_loop.h"
#include "radix/base/ids.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

class ProcessWatch {
 public:
  // `exited` hears of each session once, when its process is gone, unless it was removed before.
  ProcessWatch(EventLoop* loop, std::function<void(SessionId)> exited);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // The number of the process that is seen under `pid`: of one that is watched, or a new one, to
  // be given to Add. Equal numbers are the same process, and none is ever used again.
  uint64_t NumberOf(int pid);
  // `number` is NumberOf(pid)'s, of this turn. False: the system has no room for another watch;
  // `session` will not be heard of.
  bool Add(SessionId session, UniqueFd pidfd, int pid, uint64_t number);
  // Nobody wants to know when this session's process goes. No effect if it was not added.
  void Remove(SessionId session);

 private:
  struct Process {
    UniqueFd pidfd;
    int pid = 0;
    EventLoop::WatchId watch = EventLoop::WatchId::kNone;
    absl::flat_hash_set<SessionId> sessions;
  };
  using Processes = absl::flat_hash_map<uint64_t, Process>;
  void Fired(uint64_t key);
  // Stops to watch it.
  Process Take(Processes::iterator process);

  EventLoop* loop_;
  std::function<void(SessionId)> exited_;
  Processes processes_;
  absl::flat_hash_map<SessionId, uint64_t> key_by_session_;
  absl::flat_hash_map<int, uint64_t> key_by_pid_;  // of those whose pid can be seen
  uint64_t last_key_ = 0;
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_PROCESS_WATCH_H_
