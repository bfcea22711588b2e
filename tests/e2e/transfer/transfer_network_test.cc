// UcxEngines on two hosts (network namespaces) whose cable is cut, slow or lossy: PLATFORM 2.4.
#include <gtest/gtest.h>

#include <optional>

#include "tests/e2e/transfer/namespaces.h"
#include "tests/e2e/transfer/peer.h"

namespace pando::e2e {
namespace {

class TransferNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.missing().empty()) GTEST_SKIP() << hosts_.missing();
    for (const char host : {'a', 'b'}) {
      auto& peer = host == 'a' ? requester_ : owner_;
      peer.emplace(PeerOptions{
          .listen = Namespaces::AddressOf(host) + ":0", .stall_ms = 2000, .in = hosts_.In(host)});
      ASSERT_FALSE(peer->address().empty());
    }
    owner_->Offer(1);
  }
  void TearDown() override {
    if (!hosts_.missing().empty()) return;
    EXPECT_TRUE(requester_->IsClean()) << "memory was written after its pull's end";
  }
  void ExpectWhole(uint64_t id, uint64_t grant) {
    requester_->Pull(id, 30'000, owner_->address(), grant);
    const auto done = requester_->Done(id, 30);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, PullStatus::kOk);
    EXPECT_EQ(done->arrived, PeerOptions{}.pages);
  }

  Namespaces hosts_;  // outlives those in them
  std::optional<Peer> owner_, requester_;
};

// FAULTS D6, B2: nobody tells UCX of a partition. Both sides give up by their stall timeouts, and
// what was under way when the cable was cut touches no memory when it is whole again.
TEST_F(TransferNetworkTest, TheLinkGoesDownAndUp) {
  requester_->Pull(1, 60'000, owner_->address(), 1);
  ASSERT_TRUE(requester_->Begun(1));
  hosts_.Link(false);
  const auto cut = requester_->Done(1, 10);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->status, PullStatus::kUnreachable);
  EXPECT_EQ(cut->arrived + cut->failed, PeerOptions{}.pages);
  EXPECT_TRUE(owner_->Revoke(1, 10)) << "its pages are its own again";
  EXPECT_EQ(requester_->Counters()[2], 1u);

  requester_->Pull(2, 1000, owner_->address(), 1);  // while it is down
  const auto down = requester_->Done(2, 10);
  ASSERT_TRUE(down);
  EXPECT_NE(down->status, PullStatus::kOk);
  EXPECT_EQ(down->failed, PeerOptions{}.pages);

  hosts_.Link(true);
  owner_->Offer(2);
  ExpectWhole(3, 2);
  EXPECT_TRUE(requester_->IsClean());
}

// FAULTS D6: a slow link is no dead one. The deadline answers the waiter; the connection, which
// makes progress, stays and serves the next.
TEST_F(TransferNetworkTest, ADeadlineInMidPullOfASlowLink) {
  hosts_.Slow('b', "400mbit", 400'000);
  requester_->Pull(1, 1000, owner_->address(), 1);
  const auto done = requester_->Done(1, 10);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, PullStatus::kDeadline);
  EXPECT_GT(done->arrived, 0u);
  EXPECT_GT(done->failed, 0u);
  EXPECT_EQ(done->bad, 0u);
  hosts_.Unslow('b');
  EXPECT_TRUE(owner_->Revoke(1));
  owner_->Offer(2);
  ExpectWhole(2, 2);
  EXPECT_EQ(requester_->Counters(), (std::vector<uint64_t>{1, 0, 0}));
}

// FAULTS D6
TEST_F(TransferNetworkTest, DelayAndLoss) {
  hosts_.Slow('b', "800mbit", 150'000);  // pages, through a queue that overflows
  hosts_.Slow('a', "1mbit", 20'000);     // requests, through one that delays
  ExpectWhole(1, 1);
  EXPECT_GT(hosts_.Dropped('b'), 0u) << "nothing was lost, so nothing was tested";
  EXPECT_TRUE(owner_->Revoke(1));
  EXPECT_EQ(requester_->Counters()[1], 0u);
}

}  // namespace
}  // namespace pando::e2e
