// What the pull benchmark's programs share: a pool of pages known to both sides, and the owner's
// process, which runs one lot of pages at a time as it is told by its stdin and sleeps in between.
#ifndef PANDO_TESTS_BENCH_PULL_BENCH_PEER_H_
#define PANDO_TESTS_BENCH_PULL_BENCH_PEER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/figure.h"

namespace pando::bench {

inline constexpr size_t kPoolBytes = 512u << 20;
inline constexpr uint32_t kPulled = 256;  // pages a pull
inline constexpr uint32_t kInFlight = 32;
inline constexpr int kOwnerCore = 0, kRequesterCore = 1;

void Pin(int core);
double Seconds();
double CpuSeconds();  // of this process, so far

// Memory of kPoolBytes; an owner's is filled with words that follow from their places.
std::span<std::byte> MakePool(bool filled);
uint64_t ChecksumOfSlot(uint32_t slot, size_t page_bytes);
// kPulled different slots, in random order, the same for the same seed.
std::vector<uint32_t> Slots(unsigned seed, size_t page_bytes);

// One pull's pages: from which slot of the owner's, to which of ours.
struct Lot {
  size_t page_bytes = 0;
  std::vector<uint32_t> from, to;
  std::vector<uint64_t> checksums;
};
Lot MakeLot(unsigned seed, size_t page_bytes);

// This program as an owner of a kind, in a process of its own.
class Owner {
 public:
  explicit Owner(const std::string& kind);
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  const std::string& address() const { return address_; }
  // Tells it of the next lot and waits until it is ready to serve it.
  void Prepare(unsigned seed, size_t page_bytes);
  // CPU time of its process so far, seconds.
  double CpuSeconds() const;
  // Waits until it says that it sleeps again.
  void AwaitDone() { ReadLine(); }

 private:
  std::string ReadLine();

  pid_t pid_ = -1;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
  std::string address_;
};

// The owner's side: the next lot, or false at the end.
bool NextLot(unsigned* seed, size_t* page_bytes);
void Say(const std::string& line);

// Each: what a process of kind "am" or "tcp" does, and one pull from it; the seconds it took.
int ServeReference();
class Reference {
 public:
  explicit Reference(const std::string& address);
  // Its owner spins until it has heard the end, then says "done".
  double Pull(const Lot& lot, std::span<std::byte> pool, bool rendezvous);

 private:
  struct State;
  State* const state_;
};
int ServeTcp();
double PullTcp(int socket, const Lot& lot, std::span<std::byte> pool);
int ConnectTcp(const std::string& address);

// `iperf3` and `ucx_perftest` on this machine, or a line that says what is not installed.
void AddHotBufferPrograms(Report* report);

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_PULL_BENCH_PEER_H_
