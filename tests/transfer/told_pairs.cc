#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "tests/paths.h"
#include "tests/transfer/engine_pair.h"
#include "tests/transfer/extent_memory.h"
#include "transfer/memory/unique_fd.h"
#include "transfer/process/process_engine.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando {
namespace {

constexpr Nanos kDeadline = 30'000'000'000;

// Engines that tell of their events on threads of their own.
class ToldPair : public EnginePair {
 public:
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

 protected:
  std::function<void()> notify() const {
    return [fd = told_.get()] {
      const uint64_t one = 1;
      EXPECT_EQ(write(fd, &one, sizeof(one)), 8);
    };
  }
  template <class Engine>
  static std::unique_ptr<Engine> Made(absl::StatusOr<std::unique_ptr<Engine>> engine) {
    EXPECT_TRUE(engine.ok()) << engine.status();
    return engine.ok() ? std::move(*engine) : nullptr;
  }

 private:
  UniqueFd told_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

class UcxPair final : public ToldPair {
 public:
  UcxPair(const TransferLimits& limits, size_t rendezvous_from) {
    for (auto* const engine : {&owner, &requester}) {
      *engine = Made(UcxEngine::Create(
          {.limits = limits, .rendezvous_from = rendezvous_from, .notify = notify()}));
    }
    if (owner) owner_address = owner->address();
  }
  ~UcxPair() override {
    requester.reset();
    owner.reset();
  }
};

class ProcessPair final : public ToldPair {
 public:
  explicit ProcessPair(const TransferLimits& limits)
      : memory_([this](std::span<std::byte> extent, int fd) {
          for (TransferEngine* const engine : {owner.get(), requester.get()}) {
            if (engine != nullptr) static_cast<ProcessEngine*>(engine)->AddMemory(extent, fd);
          }
        }) {
    for (auto* const engine : {&owner, &requester}) {
      *engine = Made(ProcessEngine::Create(
          {.program = PANDO_BIN_DIR "/pando-transfer", .limits = limits, .notify = notify()}));
    }
    if (owner) owner_address = owner->address();
  }
  ~ProcessPair() override {
    requester.reset();
    owner.reset();
  }
  std::pmr::memory_resource* memory() override { return &memory_; }

 private:
  ExtentMemory memory_;
};

}  // namespace

std::unique_ptr<EnginePair> MakeUcxPair(const TransferLimits& limits) {
  return std::make_unique<UcxPair>(limits, 0);
}

std::unique_ptr<EnginePair> MakeProcessPair(const TransferLimits& limits) {
  return std::make_unique<ProcessPair>(limits);
}

std::unique_ptr<EnginePair> MakeUcxRendezvousPair(const TransferLimits& limits) {
  return std::make_unique<UcxPair>(limits, 4096);
}

}  // namespace pando
