// An owner that is stopped for 45 s: TCP is alive, nothing completes, and no error comes. PLATFORM
// 2.4.
#include <gtest/gtest.h>

#include "tests/e2e/transfer/peer.h"

namespace pando::e2e {
namespace {

constexpr int64_t kStopped = 45 * kSecond;

// FAULTS D4, D6, B2, C1: pulls from it end by their deadlines or its connection's; those from
// another owner go on; what it sends when it runs again is written nowhere; nothing has leaked.
TEST(TransferStoppedTest, AnOwnerIsStoppedFor45Seconds) {
  Peer stopped({}), other({}), requester({});
  stopped.Offer(1);
  requester.Pull(1, 120'000, stopped.address(), 1);
  ASSERT_TRUE(requester.Begun(1));
  stopped.Stop();
  const int64_t end = Now() + kStopped;
  const auto first = requester.Done(1, 10);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, PullStatus::kUnreachable);
  EXPECT_EQ(first->arrived + first->failed, PeerOptions{}.pages);

  size_t files = 0;
  uint64_t id = 1, closed = 0;
  while (Now() < end) {
    requester.Pull(++id, 3000, stopped.address(), 1);
    other.Offer(++id);
    requester.Pull(id, 10'000, other.address(), id);
    const auto served = requester.Done(id, 11);
    ASSERT_TRUE(served);
    EXPECT_EQ(served->status, PullStatus::kOk);
    EXPECT_EQ(served->arrived, PeerOptions{}.pages);
    ASSERT_TRUE(other.Revoke(id));
    const auto given_up = requester.Done(id - 1, 5);
    ASSERT_TRUE(given_up);
    EXPECT_NE(given_up->status, PullStatus::kOk);
    EXPECT_EQ(given_up->failed, PeerOptions{}.pages);
    if (++closed == 1) files = requester.Descriptors();
  }
  EXPECT_EQ(requester.Counters(), (std::vector<uint64_t>{closed + 2, closed + 1, closed + 1}));
  EXPECT_LE(requester.Descriptors(), files + 2);

  stopped.Continue();
  EXPECT_TRUE(stopped.Revoke(1)) << "all its sends are over";
  stopped.Offer(2);
  requester.Pull(++id, 20'000, stopped.address(), 2);
  const auto again = requester.Done(id, 21);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, PullStatus::kOk);
  EXPECT_EQ(again->arrived, PeerOptions{}.pages);
  EXPECT_TRUE(requester.IsClean()) << "memory was written after its pull's end";
  EXPECT_LE(stopped.Descriptors(), other.Descriptors() + 2);
}

}  // namespace
}  // namespace pando::e2e
