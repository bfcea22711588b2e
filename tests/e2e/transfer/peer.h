// A peer_main.cc process as a test sees it. One thread; every wait has a deadline.
#ifndef PANDO_TESTS_E2E_TRANSFER_PEER_H_
#define PANDO_TESTS_E2E_TRANSFER_PEER_H_

#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/process/child.h"
#include "transfer/engine.h"

namespace pando::e2e {

struct PeerOptions {
  uint32_t pages = 128;
  size_t bytes = 1 << 20;
  std::string listen = "127.0.0.1:0";
  int stall_ms = 1000;
  std::vector<std::string> in = {};  // a command that runs the rest: "ip netns exec NAME"
};

// How a pull ended.
struct PullDone {
  PullStatus status = PullStatus::kOk;
  uint32_t arrived = 0, bad = 0, failed = 0;
};

class Peer {
 public:
  explicit Peer(const PeerOptions& options);

  const std::string& address() const { return address_; }  // empty: it did not start
  Child& process() { return child_; }

  // The command's answer, or "" and a failure after `seconds`. What else is said meanwhile is kept.
  std::string Ask(const std::string& command, const std::string& answer, int seconds = 60);
  std::string Expect(const std::string& answer, int seconds = 60);

  // Grants by number, never used twice: what was asked of an old one may come late.
  void Offer(uint64_t grant);
  bool Revoke(uint64_t grant, int seconds = 60);  // true: it has ended
  void Pull(uint64_t id, int ms, const std::string& address, uint64_t grant);
  bool Begun(uint64_t id) { return !Expect("first " + std::to_string(id)).empty(); }
  std::optional<PullDone> Done(uint64_t id, int seconds);
  // No memory of a pull was written after its end.
  bool IsClean() { return Ask("check", "check ") == "check clean"; }
  // {connections, of these closed, of these for want of progress}
  std::vector<uint64_t> Counters();

  void Stop();
  void Continue() { child_.Signal(SIGCONT); }
  size_t Descriptors() const;
  struct Use {
    uint64_t switches = 0;  // of all its threads
    int64_t cpu = 0;        // ns
  };
  Use Used() const;

 private:
  Child child_;
  std::vector<std::string> lines_;  // said, and not yet expected
  std::string address_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_TRANSFER_PEER_H_
