// A pando-node of one's own, and a prompt.
#ifndef PANDO_TESTS_BENCH_LOCAL_BENCH_NODE_H_
#define PANDO_TESTS_BENCH_LOCAL_BENCH_NODE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

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

inline constexpr uint64_t kPageBytes = 4096;

// A prompt of `resident` tokens and one more, which is left to compute.
std::vector<uint32_t> PromptOf(uint32_t resident);

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_LOCAL_BENCH_NODE_H_
