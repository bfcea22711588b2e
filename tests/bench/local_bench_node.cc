#include "tests/bench/local_bench_node.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/bench/local_bench_echo.h"

namespace pando::bench {

void Fail(const std::string& what) {
  std::fprintf(stderr, "local_bench: %s\n", what.c_str());
  std::exit(1);
}

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

std::unique_ptr<client::Client> Attach(const std::string& socket, const std::string& replica_key) {
  client::Options options;
  options.socket = socket;
  options.replica_key = replica_key;
  options.block_tokens = kBlockTokens;
  options.page_bytes = kPageBytes;
  options.fields = {{"model", "bench"}};
  auto client = client::Client::Create(options);
  if (!client->WaitAttached(client::NowNanos() + kCallNanos)) {
    Fail("not attached: " + client->last_error());
  }
  return client;
}

std::vector<uint32_t> PromptOf(uint32_t resident) {
  std::vector<uint32_t> tokens(resident + 1);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = 1 + i * 2654435761u;
  return tokens;
}

void StorePrompt(client::Client* client, const std::vector<uint32_t>& tokens) {
  const int64_t deadline = client::NowNanos() + kCallNanos;
  const auto blocks = static_cast<uint32_t>(tokens.size() / kBlockTokens);
  auto reserve = client->StartReserve(0, {tokens, {}, {}}, {}, 0, blocks, 0, deadline);
  const client::ReserveResult& reserved = client->Wait(reserve);
  if (!reserved.claim) Fail("not reserved: " + reserved.message);
  const std::vector<client::Claim> claims = {reserved.claim};
  auto begin = client->StartBegin(claims, deadline);
  client::BeginResult& begun = client->Wait(begin);
  if (begun.holds.size() != 1) Fail("not begun: " + begun.message);
  const std::vector<std::byte> page(kPageBytes, std::byte{7});
  const std::vector<std::span<const std::byte>> pieces = {page};
  for (uint32_t i = 0; i < begun.holds[0].pages(); ++i) {
    if (!begun.holds[0].Store(i, pieces)) Fail("not stored");
  }
  auto end = client->StartEnd(std::move(begun.holds[0]), deadline);
  const client::EndResult& ended = client->Wait(end);
  if (ended.code != client::Code::kOk) Fail("not committed: " + ended.message);
}

}  // namespace pando::bench
