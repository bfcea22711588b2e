// Bytes and file descriptors over a Unix stream socket, without blocking.
//
// Every received descriptor is owned at once (close-on-exec), whatever it is; who does not want it
// lets it go. Stateless; any thread.
#ifndef PANDO_NODE_LOCAL_SOCKET_IO_H_
#define PANDO_NODE_LOCAL_SOCKET_IO_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transfer/memory/unique_fd.h"

namespace pando::local {

enum class Io : uint8_t {
  kDone,    // some bytes went
  kAgain,   // not now: the other side is to read first
  kLater,   // not now: the system has no room for it, whatever the other side does
  kEnded,   // the other side has gone
  kFailed,  // errno says why
};

struct Received {
  Io io = Io::kAgain;
  size_t bytes = 0;
  bool fds_lost = false;  // the kernel closed some that did not fit
};

// Reads once; descriptors that came with the bytes are appended to `fds`.
Received ReceiveOnce(int socket, std::span<char> buffer, std::vector<UniqueFd>* fds);

struct Sent {
  Io io = Io::kAgain;
  size_t bytes = 0;
};

// Writes once; `fds` (at most limits::kFdsPerMessage) go with the first byte.
Sent SendOnce(int socket, std::string_view bytes, std::span<const int> fds);

// The process that a pidfd names, as this process sees it: 0 if it lives in a process namespace
// that cannot be seen from here, -1 if it has been reaped. No pid: `fd` is no pidfd; or, with an
// errno in `error`, the kernel could not be asked.
struct NamedProcess {
  std::optional<int> pid;
  int error = 0;
};
NamedProcess PidOf(int fd);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
std::optional<PeerCredentials> CredentialsOf(int socket);

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_SOCKET_IO_H_
