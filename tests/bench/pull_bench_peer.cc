#include "tests/bench/pull_bench_peer.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "transfer/memory/page_copy.h"

namespace pando::bench {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void FillWords(std::span<std::byte> to, uint64_t first_word) {
  for (size_t at = 0; at < to.size(); at += 8) {
    const uint64_t word = (first_word + at / 8) * 0x9e3779b97f4a7c15;
    std::memcpy(&to[at], &word, 8);
  }
}

}  // namespace

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

double Seconds() {
  return SecondsOf(CLOCK_MONOTONIC);
}

double CpuSeconds() {
  return SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
}

std::span<std::byte> MakePool(bool filled) {
  void* const start =
      mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) std::abort();
  const std::span<std::byte> pool(static_cast<std::byte*>(start), kPoolBytes);
  if (filled) {
    FillWords(pool, 0);
  } else {
    std::memset(start, 1, kPoolBytes);
  }
  return pool;
}

uint64_t ChecksumOfSlot(uint32_t slot, size_t page_bytes) {
  std::vector<std::byte> page(page_bytes);
  FillWords(page, slot * (page_bytes / 8));
  return PageChecksum(page);
}

std::vector<uint32_t> Slots(unsigned seed, size_t page_bytes) {
  std::vector<uint32_t> slots(kPoolBytes / page_bytes);
  std::iota(slots.begin(), slots.end(), 0u);
  std::mt19937 random(seed);
  std::shuffle(slots.begin(), slots.end(), random);
  slots.resize(kPulled);
  return slots;
}

Lot MakeLot(unsigned seed, size_t page_bytes) {
  Lot lot{page_bytes, Slots(seed, page_bytes), Slots(seed + 1'000'000, page_bytes), {}};
  for (const uint32_t slot : lot.from) lot.checksums.push_back(ChecksumOfSlot(slot, page_bytes));
  return lot;
}

Owner::Owner(const std::string& kind) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    execl("/proc/self/exe", "bench_pull", "--owner", kind.c_str(), nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  in_ = fdopen(to[1], "w");
  out_ = fdopen(from[0], "r");
  address_ = ReadLine();
}

Owner::~Owner() {
  std::fclose(in_);
  std::fclose(out_);
  waitpid(pid_, nullptr, 0);
}

void Owner::Prepare(unsigned seed, size_t page_bytes) {
  std::fprintf(in_, "%u %zu\n", seed, page_bytes);
  std::fflush(in_);
  ReadLine();
}

double Owner::CpuSeconds() const {
  clockid_t clock{};
  return clock_getcpuclockid(pid_, &clock) == 0 ? SecondsOf(clock) : 0;
}

std::string Owner::ReadLine() {
  char line[128] = {};
  if (std::fgets(line, sizeof(line), out_) == nullptr) std::abort();
  return std::string(line, std::strcspn(line, "\n"));
}

bool NextLot(unsigned* seed, size_t* page_bytes) {
  return std::scanf("%u %zu", seed, page_bytes) == 2;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace pando::bench
