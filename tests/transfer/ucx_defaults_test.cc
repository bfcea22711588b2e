#include "transfer/ucx/ucx_defaults.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <ucs/sys/sock.h>
#include <unistd.h>

namespace pando {
namespace {

// FAULTS D4: a peer that goes while its pages leave must not end the process that sends them.
TEST(UcxDefaultsTest, ABrokenConnectionIsToldByReadingIt) {
  transfer::SetUcxDefaults();
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  const int ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(ours, reinterpret_cast<sockaddr*>(&at), size), 0);
  const int theirs = accept(listener, nullptr, nullptr);
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(theirs, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  close(theirs);
  pollfd broken{ours, POLLIN, 0};
  ASSERT_EQ(poll(&broken, 1, 10'000), 1);

  char byte = 0;
  iovec piece{&byte, 1};
  size_t sent = 1;
  for (int i = 0; i < 3; ++i) {  // ECONNRESET first, then EPIPE
    EXPECT_EQ(ucs_socket_sendv_nb(ours, &piece, 1, &sent), UCS_ERR_NO_PROGRESS);
  }
  size_t got = 1;
  const ucs_status_t told = ucs_socket_recv_nb(ours, &byte, &got);
  EXPECT_TRUE(told == UCS_ERR_NOT_CONNECTED || told == UCS_ERR_CONNECTION_RESET)
      << ucs_status_string(told);
  close(ours);
  close(listener);
}

}  // namespace
}  // namespace pando
