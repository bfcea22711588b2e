#include "tests/bench/local_bench_node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/bench/bench_client.h"
#include "tests/bench/local_bench_echo.h"
#include "tests/paths.h"

namespace pando::bench {

BenchNode::BenchNode(int core) {
  folder_ = "/tmp/pando-bench-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) Fail("mkdtemp");
  socket_ = folder_ + "/node.sock";
  int ready[2];
  if (::pipe(ready) != 0) Fail("pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    if (core >= 0) PinTo(core);
    ::dup2(ready[1], 1);
    ::close(ready[0]);
    ::close(ready[1]);
    ::execl(PANDO_BIN_DIR "/pando-node", "pando-node", "--socket", socket_.c_str(), "--host-slab",
            "256MiB", "--log-level", "error", nullptr);
    ::_exit(127);
  }
  ::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) != 1) Fail("pando-node did not become ready");
  ::close(ready[0]);
}

BenchNode::~BenchNode() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
  std::filesystem::remove_all(folder_);
}

double BenchNode::CpuMicros() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/schedstat");
  double nanos = 0;
  file >> nanos;  // of the main thread, which owns the sockets and the core
  return nanos / 1000;
}

std::vector<uint32_t> PromptOf(uint32_t resident) {
  std::vector<uint32_t> tokens(resident + 1);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = 1 + i * 2654435761u;
  return tokens;
}

}  // namespace pando::bench
