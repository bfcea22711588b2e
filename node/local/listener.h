// A listening Unix stream socket that belongs to one node.
//
// Mode 0660. A socket that somebody listens on is never taken over; one that a dead process left
// behind is removed. At its end the listener unlinks its own socket, and never another's that has
// taken its place. Errors: absl::Status, with what to do. Owner thread.
#ifndef PANDO_NODE_LOCAL_LISTENER_H_
#define PANDO_NODE_LOCAL_LISTENER_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

// Makes room for a socket at `path`: removes a stale one. An error if the path is too long, its
// directory is missing, it is no socket, or somebody listens there.
absl::Status ClearSocketPath(const std::string& path);

// The name of a socket in the file system: unlinked at its end, unless another socket has taken its
// place.
class SocketFile {
 public:
  // Of the socket that is at `path` now.
  static absl::StatusOr<SocketFile> At(const std::string& path);
  SocketFile(SocketFile&& other) noexcept;
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

  const std::string& path() const { return path_; }

 private:
  SocketFile(std::string path, dev_t device, ino_t inode);

  std::string path_;  // empty: moved from
  dev_t device_;
  ino_t inode_;
};

class Listener {
 public:
  static absl::StatusOr<Listener> Bind(const std::string& path);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return file_.path(); }

 private:
  Listener(UniqueFd fd, SocketFile file) : fd_(std::move(fd)), file_(std::move(file)) {}

  UniqueFd fd_;
  SocketFile file_;  // goes first: nobody finds a socket that is closed
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_LISTENER_H_
