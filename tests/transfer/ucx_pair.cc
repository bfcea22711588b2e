#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "tests/transfer/engine_pair.h"
#include "transfer/memory/unique_fd.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando {
namespace {

constexpr Nanos kDeadline = 30'000'000'000;

class UcxPair final : public EnginePair {
 public:
  UcxPair(const TransferLimits& limits, size_t rendezvous_from) {
    owner = Make(limits, rendezvous_from);
    requester = Make(limits, rendezvous_from);
    if (owner) owner_address = owner->address();
  }
  ~UcxPair() override {
    requester.reset();
    owner.reset();
  }

  Nanos Now() const override {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  }
  bool Await(const std::function<bool()>& done) override {
    const Nanos end = Now() + kDeadline;
    for (;;) {
      Take();
      if (done()) return true;
      const Nanos left = end - Now();
      if (left <= 0) return false;
      pollfd fd{told_.get(), POLLIN, 0};
      poll(&fd, 1, static_cast<int>(std::min<Nanos>(left / 1'000'000 + 1, 20)));  // for counters
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(told_.get(), &count, sizeof(count));
    }
  }

 private:
  std::unique_ptr<UcxEngine> Make(const TransferLimits& limits, size_t rendezvous_from) {
    auto engine = UcxEngine::Create(
        {.limits = limits, .rendezvous_from = rendezvous_from, .notify = [fd = told_.get()] {
           const uint64_t one = 1;
           EXPECT_EQ(write(fd, &one, sizeof(one)), 8);
         }});
    EXPECT_TRUE(engine.ok()) << engine.status();
    return engine.ok() ? std::move(*engine) : nullptr;
  }

  UniqueFd told_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

}  // namespace

std::unique_ptr<EnginePair> MakeUcxPair(const TransferLimits& limits) {
  return std::make_unique<UcxPair>(limits, 0);
}

std::unique_ptr<EnginePair> MakeUcxRendezvousPair(const TransferLimits& limits) {
  return std::make_unique<UcxPair>(limits, 4096);
}

}  // namespace pando
