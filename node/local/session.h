// One engine's connection, as its server sees it: a plain record, all of it the owner thread's.
#ifndef PANDO_NODE_LOCAL_SESSION_H_
#define PANDO_NODE_LOCAL_SESSION_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "node/core/messages.h"
#include "node/local/event_loop.h"
#include "node/local/frame.h"
#include "node/local/send_queue.h"
#include "radix/base/ids.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

struct Session {
  SessionId id;
  UniqueFd socket;
  EventLoop::WatchId watch = EventLoop::WatchId::kNone;
  uint32_t events = 0;  // what epoll is asked for

  FrameReader reader;
  size_t frame_at = 0;      // in its frame, where the next message is; 0: not begun
  bool waiting = false;     // the reader has whole frames left; nothing more is read meanwhile
  bool resumable = false;   // it is in the server's list of those that may go on with them
  int last_reads = 0;       // since its process has gone
  uint64_t half_bytes = 0;  // of a frame whose rest has not come, as the server's sum counts it
  uint64_t half_since = 0;  // grows from one half frame to the next, over all sessions
  // Descriptors that came before the attach: the one it may bring, and how many there were.
  UniqueFd attach_fd;
  uint32_t attach_fds = 0;
  bool attach_fds_lost = false;  // some came that this process had no room for
  pid_t peer_pid = 0;            // who connected; 0: it cannot be seen from here
  bool attached = false;         // its process is watched

  std::vector<std::pair<uint64_t, Answer>> answers;  // {serial, answer}, not yet in a frame
  uint64_t answer_bytes = 0;                         // about what those will be
  SendQueue queue;
  uint64_t queue_bytes = 0;        // as the server's sum counts them
  bool resting = false;            // the system has no room for what it sends: tried again later
  std::vector<bool> extents_sent;  // by ExtentId
  bool reading = true;             // false while its queue is full
  bool deaf = false;               // the other side no longer listens: answers are dropped
  bool ending = false;             // no longer read; closed once its answers have gone
  bool closed = false;             // to be swept
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_SESSION_H_
