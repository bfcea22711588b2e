// Hears the signals that end the node, and ends its process if the node does not.
//
//   SIGTERM ──► owner thread: drain ──► all threads end ──► ~HardStop
//     └──────── drain's timeout ── kGrace ──► one line on stderr, _exit(kExitStuck)
//
// A second signal ends the drain, and leaves kGrace from then on. It needs no other thread of the
// node, so it counts whichever of them is stuck: the owner, gRPC, HTTP, the log.
//
// Threads: made and ended by one thread; waits for signals on one of its own, asleep.
#ifndef PANDO_NODE_RUNTIME_HARD_STOP_H_
#define PANDO_NODE_RUNTIME_HARD_STOP_H_

#include <signal.h>

#include <chrono>
#include <thread>

#include "transfer/memory/unique_fd.h"

namespace pando::runtime {

// SIGTERM, SIGINT, SIGHUP and SIGQUIT: each drains the node, a second one ends it at once.
sigset_t EndingSignals();

inline constexpr int kExitStuck = 3;
inline constexpr std::chrono::milliseconds kGrace{1000};

class HardStop {
 public:
  // EndingSignals are blocked in all threads.
  explicit HardStop(std::chrono::milliseconds drain_timeout,
                    std::chrono::milliseconds grace = kGrace);
  ~HardStop();  // it all has ended well
  HardStop(const HardStop&) = delete;
  HardStop& operator=(const HardStop&) = delete;

  // An eventfd that counts the signals that came.
  int signals() const { return told_.get(); }

 private:
  void Watch();

  const std::chrono::milliseconds drain_timeout_, grace_;
  UniqueFd signals_, told_, ended_;
  std::thread thread_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_HARD_STOP_H_
