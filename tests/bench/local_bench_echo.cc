#include "tests/bench/local_bench_echo.h"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
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

struct EchoEngine {
  int socket = -1;
  std::vector<char> bytes;
  size_t trip = 0;  // the one that comes next
};

bool ServeOne(EchoEngine* engine, std::span<const EchoTrip> trips) {
  const EchoTrip& trip = trips[engine->trip];
  engine->trip = (engine->trip + 1) % trips.size();
  engine->bytes.resize(trip.request_bytes);
  if (!ReceiveAll(engine->socket, &engine->bytes)) return false;
  engine->bytes.resize(trip.reply_bytes);
  return SendAll(engine->socket, engine->bytes);
}

// Until the first engine has gone.
[[noreturn]] void ServeEngines(const std::vector<int>& sockets, std::span<const EchoTrip> trips) {
  const int epoll = ::epoll_create1(0);
  std::vector<EchoEngine> engines(sockets.size());
  for (size_t i = 0; i < sockets.size(); ++i) {
    engines[i].socket = sockets[i];
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event) != 0) ::_exit(1);
  }
  std::vector<epoll_event> ready(sockets.size());
  while (true) {
    const int count = ::epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      if (!ServeOne(&engines[ready[static_cast<size_t>(i)].data.u64], trips)) ::_exit(0);
    }
  }
}

// One engine's rate, or -1, through the pipe; its end would end the server before the others are
// done.
[[noreturn]] void Tell(int result, double per_second) {
  if (::write(result, &per_second, sizeof(per_second)) == sizeof(per_second)) ::pause();
  ::_exit(1);
}

[[noreturn]] void RunEchoEngine(int socket, std::span<const EchoTrip> trips, double seconds,
                                int result) {
  std::vector<char> bytes;
  uint64_t cycles = 0;
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> took{};
  for (; took.count() < seconds; ++cycles) {
    for (const EchoTrip& trip : trips) {
      bytes.resize(trip.request_bytes);
      if (!SendAll(socket, bytes)) Tell(result, -1);
      bytes.resize(trip.reply_bytes);
      if (!ReceiveAll(socket, &bytes)) Tell(result, -1);
    }
    took = std::chrono::steady_clock::now() - start;
  }
  Tell(result, static_cast<double>(cycles) / took.count());
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

double EchoCyclesPerSecond(int engines, std::span<const EchoTrip> trips, double seconds) {
  int result[2];
  if (::pipe(result) != 0) std::abort();
  std::vector<int> client_ends, server_ends;
  for (int i = 0; i < engines; ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    client_ends.push_back(ends[0]);
    server_ends.push_back(ends[1]);
  }
  std::vector<pid_t> children = {::fork()};
  if (children.back() == 0) ServeEngines(server_ends, trips);
  for (const int socket : client_ends) {
    children.push_back(::fork());
    if (children.back() == 0) RunEchoEngine(socket, trips, seconds, result[1]);
  }
  double all = 0;
  for (int i = 0; i < engines; ++i) {
    double one = 0;
    if (::read(result[0], &one, sizeof(one)) != sizeof(one) || one < 0) std::abort();
    all += one;
  }
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  for (const std::vector<int>& sockets : {client_ends, server_ends}) {
    for (const int socket : sockets) ::close(socket);
  }
  for (const int fd : result) ::close(fd);
  return all;
}

}  // namespace pando::bench
