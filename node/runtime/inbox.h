// What other threads deliver to the core, until the owner thread steps with it.
//
//   other thread   Put(input), Wake()   never refused: each who puts has few on their way at once
//   owner thread   fd() is readable ──► Take
//
// Threads: Put and Wake any; the rest the owner thread.
#ifndef PANDO_NODE_RUNTIME_INBOX_H_
#define PANDO_NODE_RUNTIME_INBOX_H_

#include <mutex>
#include <vector>

#include "node/core/node_core.h"
#include "transfer/memory/unique_fd.h"

namespace pando::runtime {

class Inbox {
 public:
  Inbox();

  void Put(Input input);
  // There is something to be done, though no input waits.
  void Wake();

  // Readable after Put or Wake, until Take.
  int fd() const { return event_.get(); }
  // All that waits, in order.
  std::vector<Input> Take();

 private:
  UniqueFd event_;
  std::mutex mutex_;
  std::vector<Input> waiting_;  // guarded by mutex_
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_INBOX_H_
