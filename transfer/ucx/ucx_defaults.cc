#include "transfer/ucx/ucx_defaults.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace pando::transfer {

void SetUcxDefaults() {
  // A page and its header in one segment: no piece of it is copied twice. (The default of 8 KiB has
  // half the throughput.)
  constexpr const char* kTcpSegment = "2112k";
  ::setenv("UCX_TCP_TX_SEG_SIZE", kTcpSegment, 0);
  ::setenv("UCX_TCP_RX_SEG_SIZE", kTcpSegment, 0);
  // No PUT over TCP: its acknowledgement aborts the process when it comes for an endpoint that
  // failed meanwhile (UCX 1.13, tcp_ep.c).
  ::setenv("UCX_TCP_PUT_ENABLE", "n", 0);
  // A node that is started again gets its port back at once.
  ::setenv("UCX_TCP_CM_REUSEADDR", "y", 0);
}

}  // namespace pando::transfer

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const ssize_t sent = ::syscall(SYS_sendmsg, fd, message, flags);
  if (sent < 0 && (errno == ECONNRESET || errno == EPIPE || errno == ETIMEDOUT)) errno = EAGAIN;
  return sent;
}
