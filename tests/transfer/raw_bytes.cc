#include "tests/transfer/raw_bytes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "transfer/memory/unique_fd.h"

namespace pando {

void SendRaw(const std::string& address, const std::string& bytes) {
  const size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  ASSERT_EQ(inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr), 1);
  constexpr int kTries = 1000, kPauseMs = 10;  // who is to listen may be about to
  for (int i = 0; i < kTries; ++i) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
      ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      return;
    }
    ASSERT_EQ(errno, ECONNREFUSED);
    poll(nullptr, 0, kPauseMs);
  }
  FAIL() << "nobody listens at " << address;
}

}  // namespace pando
