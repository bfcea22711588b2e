// FAULTS D7: in a fork's child the client says so and touches neither socket nor memory.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/fake_node.h"

namespace pando::client {
namespace {

class ForkTest : public ClientTest {
 protected:
  // Runs `body` in a child; true if it returned true there.
  static bool InChild(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body() ? 0 : 1);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_F(ForkTest, TheChildsCallsAreUnavailableAndTheParentGoesOn) {
  StartAttached();
  Hold hold = BeginHold(71, true, 1);
  auto waiting = client().StartProbe({}, Soon());
  client().Flush();
  const uint64_t serial = node().ReadOne().serial();
  const std::vector<std::byte> bytes(kPageBytes);
  const std::span<const std::byte> piece(bytes);

  EXPECT_TRUE(InChild([&] {
    bool good = client().state() == State::kForked && client().fd() == -1;
    auto probe = client().StartProbe({}, Soon());
    good = good && probe.ready() && probe.get().code == Code::kUnavailable;
    auto settle = client().StartSettle(1, {}, Soon());
    good = good && settle.get().code == Code::kUnavailable;
    good = good && !hold.live() && !hold.Store(0, std::span(&piece, 1));
    good = good && client().StartEnd(std::move(hold), Soon()).get().code == Code::kUnavailable;
    client().Poll();
    client().Flush();
    const Claim claim = Named(71);
    client().Abort(std::span(&claim, 1));
    good = good && client().Wait(waiting).code == Code::kUnavailable;
    good = good && !client().WaitAttached(Soon());
    good = good && client().last_error().find("fork") != std::string::npos;
    client_.reset();
    return good;
  }));

  EXPECT_FALSE(node().HasInput()) << "the child spoke on its parent's socket";
  EXPECT_TRUE(hold.live());
  EXPECT_TRUE(hold.Store(0, std::span(&piece, 1)));
  node().Answer(serial, [](auto& answer) { answer.mutable_probe(); });
  client().Poll();
  EXPECT_EQ(waiting.get().code, Code::kOk);
}

TEST_F(ForkTest, TheChildMayJustDropAll) {
  StartAttached();
  Hold hold = BeginHold(71, true, 1);
  EXPECT_TRUE(InChild([&] {
    hold = Hold();
    client_.reset();
    return true;
  }));
  client().Poll();
  EXPECT_FALSE(node().HasInput());
  EXPECT_TRUE(hold.live());
}

TEST_F(ForkTest, TheChildMayHaveAClientOfItsOwn) {
  StartAttached();
  EXPECT_TRUE(InChild([&] {
    Start();
    client().Poll();
    return client().state() == State::kAttaching;
  }));
  EXPECT_TRUE(node().Accept());
}

// A fork that goes past libc's handlers is seen as well.
TEST_F(ForkTest, ARawForkIsSeen) {
  StartAttached();
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (child == 0) _exit(client().state() == State::kForked ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace pando::client
