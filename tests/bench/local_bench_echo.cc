#include "tests/bench/local_bench_echo.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/bench/figure.h"

namespace pando::bench {
namespace {

bool ReceiveAll(int socket, std::vector<char>* buffer) {
  size_t got = 0;
  while (got < buffer->size()) {
    const ssize_t n = ::recv(socket, buffer->data() + got, buffer->size() - got, 0);
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  return true;
}

bool SendAll(int socket, const std::vector<char>& buffer) {
  size_t sent = 0;
  while (sent < buffer.size()) {
    const ssize_t n = ::send(socket, buffer.data() + sent, buffer.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

[[noreturn]] void Serve(int socket, size_t request_bytes, size_t reply_bytes) {
  std::vector<char> request(request_bytes), reply(reply_bytes, 'r');
  while (ReceiveAll(socket, &request) && SendAll(socket, reply)) {
  }
  ::_exit(0);
}

}  // namespace

void PinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) std::perror("sched_setaffinity");
}

double EchoMicros(size_t request_bytes, size_t reply_bytes, int client_core, int server_core,
                  int calls) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  const pid_t server = ::fork();
  if (server == 0) {
    ::close(ends[0]);
    PinTo(server_core);
    Serve(ends[1], request_bytes, reply_bytes);
  }
  ::close(ends[1]);
  PinTo(client_core);
  std::vector<char> request(request_bytes, 'q'), reply(reply_bytes);
  std::vector<double> micros;
  micros.reserve(static_cast<size_t>(calls));
  for (int i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!SendAll(ends[0], request) || !ReceiveAll(ends[0], &reply)) std::abort();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    micros.push_back(took.count());
  }
  ::close(ends[0]);
  ::waitpid(server, nullptr, 0);
  return Median(std::move(micros));
}

}  // namespace pando::bench
