#include "tests/e2e/process/peer_flags.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pando::e2e {

std::vector<std::string> FreePorts(size_t count) {
  std::vector<int> sockets;
  std::vector<std::string> ports;
  for (size_t i = 0; i < count; ++i) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    ports.push_back(std::to_string(ntohs(address.sin_port)));
  }
  for (const int fd : sockets) close(fd);
  return ports;
}

std::vector<std::string> PeerFlags(const std::string& name, const std::string& port,
                                   const std::string& other, const std::vector<std::string>& more) {
  std::vector<std::string> flags = {"--name",        name,
                                    "--peer-listen", "127.0.0.1:" + port,
                                    "--peers",       "127.0.0.1:" + port + ",127.0.0.1:" + other};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

}  // namespace pando::e2e
