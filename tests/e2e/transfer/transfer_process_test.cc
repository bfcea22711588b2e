// UcxEngines in real processes that die, stop and are late: PLATFORM 2.4, event by event.
#include <gtest/gtest.h>
#include <poll.h>

#include <optional>

#include "tests/e2e/transfer/peer.h"

namespace pando::e2e {
namespace {

constexpr uint32_t kPages = PeerOptions{}.pages;

void ExpectWhole(const std::optional<PullDone>& done) {
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, PullStatus::kOk);
  EXPECT_EQ(done->arrived, kPages);
}

class TransferProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(requester_.address().empty());
    ASSERT_FALSE(owner_->address().empty());
    owner_->Offer(1);
  }
  void BeginPull(uint64_t id, int ms) {
    requester_.Pull(id, ms, owner_->address(), 1);
    ASSERT_TRUE(requester_.Begun(id));
  }
  void ExpectServed(uint64_t id) {  // by a new grant
    owner_->Offer(2);
    requester_.Pull(id, 20'000, owner_->address(), 2);
    ExpectWhole(requester_.Done(id, 20));
    EXPECT_TRUE(requester_.IsClean()) << "memory was written after its pull's end";
  }

  std::optional<Peer> owner_{PeerOptions{}};
  Peer requester_{{}};
};

// FAULTS C3, B6: requests that had no answer yet fail too.
TEST_F(TransferProcessTest, TheOwnerIsKilled) {
  BeginPull(1, 60'000);
  owner_->process().Signal(SIGKILL);
  const auto done = requester_.Done(1, 10);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->arrived + done->failed, kPages);
  if (done->failed > 0) {
    EXPECT_EQ(done->status, PullStatus::kUnreachable);
  }
  owner_.emplace(PeerOptions{});
  ExpectServed(2);
}

// FAULTS C3, B2: the owner has its pages back and serves the next.
TEST_F(TransferProcessTest, TheRequesterIsKilled) {
  Peer killed({});
  killed.Pull(1, 60'000, owner_->address(), 1);
  ASSERT_TRUE(killed.Begun(1));
  killed.process().Signal(SIGKILL);
  EXPECT_TRUE(owner_->Revoke(1));
  ExpectServed(1);
}

// FAULTS C3: with one-sided gets this aborts the owner.
TEST_F(TransferProcessTest, TheRequesterIsKilledWhileTheOwnerIsStopped) {
  {
    Peer killed({});
    killed.Pull(1, 60'000, owner_->address(), 1);
    ASSERT_TRUE(killed.Begun(1));
    owner_->Stop();
  }
  owner_->Continue();
  EXPECT_TRUE(owner_->Revoke(1)) << "the owner lives";
  ExpectServed(1);
}

// FAULTS D6, B2: a deadline ends the pull and not the connection; pages whose receive had begun are
// over when they have come.
TEST_F(TransferProcessTest, ADeadlineInMidPullWhileTheOwnerIsStopped) {
  Peer patient({.stall_ms = 60'000});
  patient.Pull(1, 500, owner_->address(), 1);
  ASSERT_TRUE(patient.Begun(1));
  owner_->Stop();
  poll(nullptr, 0, 600);  // the deadline's coming, nothing else
  owner_->Continue();
  const auto done = patient.Done(1, 10);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->arrived + done->failed, kPages);
  if (done->failed > 0) {
    EXPECT_EQ(done->status, PullStatus::kDeadline);
  }
  EXPECT_TRUE(owner_->Revoke(1));
  owner_->Offer(2);
  patient.Pull(2, 20'000, owner_->address(), 2);
  ExpectWhole(patient.Done(2, 20));
  EXPECT_EQ(patient.Counters(), (std::vector<uint64_t>{1, 0, 0}));
  EXPECT_TRUE(patient.IsClean());
}

// FAULTS B2: the requester is stopped in mid-pull. The owner gets its pages back after its own
// stall timeout, and what it wrote into the connection before is whole or not there.
TEST_F(TransferProcessTest, TheRequesterIsStopped) {
  BeginPull(1, 60'000);
  requester_.Stop();
  EXPECT_TRUE(owner_->Revoke(1, 10));
  requester_.Continue();
  const auto done = requester_.Done(1, 10);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->bad, 0u);
  EXPECT_EQ(done->arrived + done->failed, kPages);
  ExpectServed(2);
}

// Connected peers that have nothing to do sleep.
TEST_F(TransferProcessTest, IdlePeersSleep) {
  requester_.Pull(1, 20'000, owner_->address(), 1);
  ExpectWhole(requester_.Done(1, 20));
  constexpr int kSeconds = 4;
  for (Peer* const peer : {&*owner_, &requester_}) {
    poll(nullptr, 0, 500);  // what was still on its way
    const Peer::Use before = peer->Used();
    poll(nullptr, 0, kSeconds * 1000);
    const Peer::Use after = peer->Used();
    EXPECT_LE(after.switches - before.switches, 5u * kSeconds);
    EXPECT_LE(after.cpu - before.cpu, kSecond / 1000 * 2 * kSeconds) << "0.2 % of a core";
    RecordProperty("switches", static_cast<int>(after.switches - before.switches));
  }
}

}  // namespace
}  // namespace pando::e2e
