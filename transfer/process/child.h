// The transfer process: started, ended and reaped.
//
// It has descriptors 0 to 2 of ours and one socket (kChildSocket), is deaf to the signals that end
// a node (they are blocked in the thread that starts it), and ends when the socket's other side
// does.
//
// Threads: one at a time.
#ifndef PANDO_TRANSFER_PROCESS_CHILD_H_
#define PANDO_TRANSFER_PROCESS_CHILD_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "radix/base/ids.h"
#include "transfer/memory/unique_fd.h"

namespace pando::transfer {

inline constexpr int kChildSocket = 3;

class Child {
 public:
  // Starts `program`; `socket` becomes ours to talk to it. UNAVAILABLE, with the reason.
  static absl::StatusOr<Child> Start(const std::string& program, UniqueFd* socket);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Child();  // kills it, if it was not reaped

  pid_t pid() const { return pid_; }
  // Waits until it has ended, at most `patience`, then kills it; its memory is touched by nobody
  // afterwards. How it ended, for a person: "signal 6 (Aborted)".
  std::string Reap(Nanos patience);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

// The program of this name in the folder of the one that runs.
std::string ProgramBeside(const std::string& name);

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_PROCESS_CHILD_H_
