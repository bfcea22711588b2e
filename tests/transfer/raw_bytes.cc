#include "tests/transfer/raw_bytes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace pando {

UniqueFd ConnectRaw(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  EXPECT_EQ(inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr), 1);
  constexpr int kTries = 1000, kPauseMs = 10;  // who is to listen may be about to
  for (int i = 0; i < kTries; ++i) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) return fd;
    if (errno != ECONNREFUSED) break;
    poll(nullptr, 0, kPauseMs);
  }
  ADD_FAILURE() << "nobody listens at " << address;
  return UniqueFd();
}

void SendRaw(const std::string& address, const std::string& bytes) {
  const UniqueFd fd = ConnectRaw(address);
  EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

}  // namespace pando
