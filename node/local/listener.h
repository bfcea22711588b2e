// A listening Unix stream socket that belongs to one node.
//
// Mode 0660. A socket that somebody listens on is never taken over; one that a dead process left
// behind is removed. At its end the listener unlinks its own socket, and never another's that has
// taken its place. Errors: absl::Status, with what to do. Owner thread.
#ifndef PANDO_NODE_LOCAL_LISTENER_H_
#define PANDO_NODE_LOCAL_LISTENER_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "node/local/unique_fd.h"

namespace pando::local {

// Makes room for a socket at `path`: removes a stale one. An error if the path is too long, its
// directory is missing, it is no socket, or somebody listens there.
absl::Status ClearSocketPath(const std::string& path);

class Listener {
 public:
  static absl::StatusOr<Listener> Bind(const std::string& path);
  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  Listener(UniqueFd fd, std::string path, dev_t device, ino_t inode);

  UniqueFd fd_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_LISTENER_H_
