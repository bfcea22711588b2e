#include "node/runtime/hard_stop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "node/runtime/log.h"
#include "radix/base/check.h"

namespace pando::runtime {
namespace {

using Clock = std::chrono::steady_clock;

void Count(int event) {
  const uint64_t one = 1;
  PANDO_CHECK(::write(event, &one, sizeof(one)) == static_cast<ssize_t>(sizeof(one))) << "eventfd";
}

// For poll: -1 is for ever.
int MillisUntil(std::optional<Clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

}  // namespace

sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  return set;
}

HardStop::HardStop(std::chrono::milliseconds drain_timeout, std::chrono::milliseconds grace)
    : drain_timeout_(drain_timeout),
      grace_(grace),
      told_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const sigset_t set = EndingSignals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  PANDO_CHECK(signals_.valid() && told_.valid() && ended_.valid()) << "signalfd, eventfd";
  thread_ = std::thread([this] { Watch(); });
}

HardStop::~HardStop() {
  Count(ended_.get());
  thread_.join();
}

void HardStop::Watch() {
  std::optional<Clock::time_point> deadline;
  for (;;) {
    std::array<pollfd, 2> ready = {{{signals_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), MillisUntil(deadline));
    if (ready[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      const auto allowed = deadline ? grace_ : drain_timeout_ + grace_;
      deadline = std::min(deadline.value_or(Clock::time_point::max()), Clock::now() + allowed);
      Count(told_.get());
    } else if (deadline && Clock::now() >= *deadline + grace_) {
      deadline = Clock::now() + grace_;  // late itself: the process was stopped, and goes on
    } else if (deadline && Clock::now() >= *deadline) {
      Log::WriteLast({LogLine::Level::kError,
                      "node.hard_stop",
                      {{"why", "a thread is stuck after the drain's timeout"},
                       {"grace_ms", std::to_string(grace_.count())},
                       {"exit", std::to_string(kExitStuck)}}});
      ::_exit(kExitStuck);
    }
  }
}

}  // namespace pando::runtime
