#include "node/runtime/hard_stop.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>

namespace pando::runtime {
namespace {

constexpr std::chrono::milliseconds kShort{20}, kLong{600'000};

// A process that hears its signal and whose main thread never ends.
[[noreturn]] void BeStuck(std::chrono::milliseconds drain_timeout, int signals) {
  const sigset_t set = EndingSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const HardStop stop(drain_timeout, kShort);
  for (int i = 0; i < signals; ++i) {
    ::kill(::getpid(), SIGTERM);
    pollfd told{stop.signals(), POLLIN, 0};
    ::poll(&told, 1, -1);
    uint64_t count = 0;
    if (::read(stop.signals(), &count, sizeof(count)) < 0) ::_exit(1);
  }
  for (;;) ::pause();
}

TEST(HardStopDeathTest, EndsAProcessThatIsStuckAfterItsDrain) {
  EXPECT_EXIT(BeStuck(kShort, 1), testing::ExitedWithCode(kExitStuck), "error node.hard_stop why=");
}

TEST(HardStopDeathTest, ASecondSignalEndsTheDrain) {
  EXPECT_EXIT(BeStuck(kLong, 2), testing::ExitedWithCode(kExitStuck), "node.hard_stop");
}

void EndWell() {
  const sigset_t set = EndingSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  {
    const HardStop stop(kLong, kShort);
    ::kill(::getpid(), SIGTERM);
  }
  ::_exit(0);
}

TEST(HardStopDeathTest, IsNotFeltByAProcessThatEnds) {
  EXPECT_EXIT(EndWell(), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace pando::runtime
