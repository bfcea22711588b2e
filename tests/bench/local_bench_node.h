// A pando-node of one's own, and an engine of role both that has stored a prompt in it.
#ifndef PANDO_TESTS_BENCH_LOCAL_BENCH_NODE_H_
#define PANDO_TESTS_BENCH_LOCAL_BENCH_NODE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace pando::bench {

class BenchNode {
 public:
  // Starts bin/pando-node, pinned to `core` (-1: nowhere), and waits until it is ready.
  explicit BenchNode(int core);
  ~BenchNode();
  BenchNode(const BenchNode&) = delete;
  BenchNode& operator=(const BenchNode&) = delete;
  const std::string& socket() const { return socket_; }
  // CPU time that it has used so far, in microseconds.
  double CpuMicros() const;

 private:
  std::string folder_, socket_;
  pid_t pid_ = -1;
};

inline constexpr uint32_t kBlockTokens = 16;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr int64_t kCallNanos = 10'000'000'000;

// Attached, or the process ends with a message.
std::unique_ptr<client::Client> Attach(const std::string& socket, const std::string& replica_key);
// A prompt of `resident` tokens and one more, which is left to compute.
std::vector<uint32_t> PromptOf(uint32_t resident);
// Stores all full blocks of the prompt.
void StorePrompt(client::Client* client, const std::vector<uint32_t>& tokens);

[[noreturn]] void Fail(const std::string& what);

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_LOCAL_BENCH_NODE_H_
