// UcxEngines in real processes that die, stop and lie: PLATFORM 2.4, event by event.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tests/e2e/process/child.h"
#include "tests/e2e/transfer/liar.h"
#include "tests/e2e/transfer/pages.h"
#include "transfer/memory/unique_fd.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando::e2e {
namespace {

constexpr uint32_t kPages = 128;
constexpr size_t kBytes = 1 << 20;
const std::string kPeer = PANDO_BIN_DIR "/e2e_transfer_peer";

Child OwnerProcess() {
  return Child({kPeer, "owner", std::to_string(kPages), std::to_string(kBytes)});
}
Child RequesterProcess(const std::string& address) {
  return Child({kPeer, "requester", std::to_string(kPages), std::to_string(kBytes), address});
}
std::string AddressOf(Child& owner) {
  const auto line = owner.ReadUntil("ready ", Now() + 20 * kSecond);
  EXPECT_TRUE(line);
  return line ? line->substr(6) : "";
}

class TransferProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = UcxEngine::Create({.limits = {.stall_timeout = kSecond}, .notify = [this] {
                                       const uint64_t one = 1;
                                       EXPECT_EQ(write(told_.get(), &one, sizeof(one)), 8);
                                     }});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = std::move(*engine);
  }
  void TearDown() override { engine_.reset(); }

  bool Await(const std::function<bool()>& done) {
    const int64_t end = Now() + 30 * kSecond;
    for (;;) {
      std::vector<TransferEvent> events;
      engine_->TakeEvents(&events);
      for (const TransferEvent& event : events) Hear(event);
      if (done()) return true;
      const int64_t left = end - Now();
      if (left <= 0) return false;
      pollfd fd{told_.get(), POLLIN, 0};
      poll(&fd, 1, static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, 20)));
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(told_.get(), &count, sizeof(count));
    }
  }
  void Hear(const TransferEvent& event) {
    if (const auto* some = std::get_if<PullPages>(&event)) {
      for (const auto& page : some->pages) {
        EXPECT_TRUE(outcomes_[some->pull].emplace(page.position, page.outcome).second);
      }
    } else if (const auto* end = std::get_if<PullEnded>(&event)) {
      EXPECT_TRUE(ended_.emplace(end->pull, end->status).second);
    } else {
      grants_.push_back(std::get<GrantEnded>(event));
    }
  }
  bool Ended(uint64_t pull) {
    return Await([&] { return ended_.contains(pull); });
  }
  bool Begun(uint64_t pull) {
    return Await([&] { return outcomes_.contains(pull); });
  }
  void ExpectWhole(uint64_t pull) {
    ASSERT_TRUE(Ended(pull));
    EXPECT_EQ(ended_[pull], PullStatus::kOk);
    for (const auto& [position, outcome] : outcomes_[pull]) {
      EXPECT_EQ(outcome, PageOutcome::kArrived);
    }
  }
  int64_t Later() { return Now() + 20 * kSecond; }

  UniqueFd told_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  Pages memory_{kPages, kBytes}, other_memory_{kPages, kBytes};
  std::map<uint64_t, std::map<uint32_t, PageOutcome>> outcomes_;
  std::map<uint64_t, PullStatus> ended_;
  std::vector<GrantEnded> grants_;
  std::unique_ptr<UcxEngine> engine_;
};

// FAULTS C3, B6: requests that had no answer yet fail too.
TEST_F(TransferProcessTest, TheOwnerIsKilled) {
  Child owner = OwnerProcess();
  engine_->Start(memory_.ToPull(1, AddressOf(owner), Later()));
  ASSERT_TRUE(Begun(1));
  owner.Signal(SIGKILL);
  const int64_t killed = Now();
  ASSERT_TRUE(Ended(1));
  EXPECT_EQ(outcomes_[1].size(), kPages);
  if (ended_[1] != PullStatus::kOk) {
    EXPECT_EQ(ended_[1], PullStatus::kUnreachable);
    EXPECT_LT(Now() - killed, 10 * kSecond);
  }
  Child next = OwnerProcess();
  engine_->Start(memory_.ToPull(2, AddressOf(next), Later()));
  ExpectWhole(2);
}

// FAULTS C3, B2: the owner has its pages back and serves the next.
TEST_F(TransferProcessTest, TheRequesterIsKilled) {
  engine_->Start(memory_.ToOffer());
  {
    Child requester = RequesterProcess(engine_->address());
    ASSERT_TRUE(requester.ReadUntil("first", Now() + 20 * kSecond));
    requester.Signal(SIGKILL);
    engine_->Revoke(kGrant);
    ASSERT_TRUE(Await([&] { return grants_.size() == 1; }));
  }
  engine_->Start(memory_.ToOffer());
  Child next = RequesterProcess(engine_->address());
  EXPECT_EQ(next.ReadUntil("done", Now() + 20 * kSecond), "done 0 " + std::to_string(kPages));
}

// FAULTS C3: with one-sided gets this aborts the owner.
TEST_F(TransferProcessTest, TheRequesterIsKilledWhileTheOwnerIsStopped) {
  Child owner = OwnerProcess();
  const std::string address = AddressOf(owner);
  {
    Child requester = RequesterProcess(address);
    ASSERT_TRUE(requester.ReadUntil("first", Now() + 20 * kSecond));
    owner.Signal(SIGSTOP);
    ASSERT_TRUE(owner.WaitStopped(Now() + 10 * kSecond));
    requester.Signal(SIGKILL);
    ASSERT_TRUE(requester.WaitExit(Now() + 10 * kSecond));
  }
  owner.Signal(SIGCONT);
  ASSERT_TRUE(owner.Send("revoke"));
  EXPECT_TRUE(owner.ReadUntil("ended", Now() + 20 * kSecond)) << "the owner lives";
  engine_->Start(memory_.ToPull(1, address, Later()));
  ASSERT_TRUE(Ended(1));
  EXPECT_EQ(ended_[1], PullStatus::kRefused) << "and answers";
}

// FAULTS D6, D4: a stopped owner stalls its own connection and no other.
TEST_F(TransferProcessTest, AStoppedOwnerIsGivenUpAndOthersGoOn) {
  Child stopped = OwnerProcess(), other = OwnerProcess();
  const std::string address = AddressOf(stopped), other_address = AddressOf(other);
  engine_->Start(memory_.ToPull(1, address, Later() + 60 * kSecond));
  ASSERT_TRUE(Begun(1));
  stopped.Signal(SIGSTOP);
  ASSERT_TRUE(stopped.WaitStopped(Now() + 10 * kSecond));
  engine_->Start(other_memory_.ToPull(2, other_address, Later()));
  ExpectWhole(2);
  ASSERT_TRUE(Ended(1));
  EXPECT_EQ(outcomes_[1].size(), kPages);
  if (ended_[1] != PullStatus::kOk) {
    EXPECT_EQ(ended_[1], PullStatus::kUnreachable);
    EXPECT_EQ(engine_->counters().connections_stalled, 1u);
  }
  stopped.Signal(SIGCONT);
}

// FAULTS G2, G4, E4: whatever a peer sends, the others are served and nothing is read.
TEST_F(TransferProcessTest, ALyingPeer) {
  engine_->Start(memory_.ToOffer());
  Liar liar(engine_->address());
  ASSERT_TRUE(liar.ok());
  for (unsigned seed = 0; seed < 400; ++seed) {
    ASSERT_TRUE(liar.Lie(seed, Now() + 10 * kSecond)) << seed;
  }
  ASSERT_TRUE(Await([&] { return engine_->counters().messages_refused >= 300; }));
  EXPECT_EQ(engine_->counters().pages_sent, 0u);
  Child next = RequesterProcess(engine_->address());
  EXPECT_EQ(next.ReadUntil("done", Now() + 20 * kSecond), "done 0 " + std::to_string(kPages));
}

}  // namespace
}  // namespace pando::e2e
