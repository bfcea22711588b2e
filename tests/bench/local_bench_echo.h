// The floor under every call: two processes, one Unix stream socket, and nothing but the bytes.
#ifndef PANDO_TESTS_BENCH_LOCAL_BENCH_ECHO_H_
#define PANDO_TESTS_BENCH_LOCAL_BENCH_ECHO_H_

#include <cstddef>
#include <span>

namespace pando::bench {

// Pins the calling thread (and what it starts) to one core.
void PinTo(int core);

// Median round trip, in microseconds, of requests and replies of these sizes, the client pinned to
// `client_core`, the server to `server_core`.
double EchoMicros(size_t request_bytes, size_t reply_bytes, int client_core, int server_core,
                  int calls);

struct EchoTrip {
  size_t request_bytes = 0, reply_bytes = 0;
};

// `engines` processes at once, each with its own socket to one server that waits for all of them:
// how often a second they go through `trips`, one trip after the other, all together.
double EchoCyclesPerSecond(int engines, std::span<const EchoTrip> trips, double seconds);

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_LOCAL_BENCH_ECHO_H_
