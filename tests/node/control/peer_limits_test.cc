// A PeerServer and a PeerClient that have no room, are read slowly, or stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "node/core/cluster/limits.h"
#include "tests/node/control/peer_examples.h"
#include "tests/node/control/peer_pair.h"
#include "tests/transfer/raw_bytes.h"

namespace pando::control {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

using PeerLimits = PeerPair;

// FAULTS D4, G2
TEST_F(PeerLimits, MoreCallsAndFeedsThanThereIsRoomFor) {
  client_.reset();
  server_.reset();
  Serve({.calls_max = 2, .feeds_max = 1});
  Connect();
  Ask(1, DoneRequest{BootId(1), {}, {}});
  Ask(2, DoneRequest{BootId(1), {}, {}});
  const auto first = owner_.Next<PeerAsks>(), second = owner_.Next<PeerAsks>();
  ASSERT_TRUE(first && second);
  Ask(3, DoneRequest{BootId(1), {}, {}});
  EXPECT_THAT(Answered(3).why, AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("2 are allowed")));
  OpenAndAsk(1);
  Open(2);
  const auto ended = requester_.Next<FeedEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->stream, 2u);
  EXPECT_THAT(ended->why, HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_EQ(server_->counters().refused_busy, 2u);
  // What ends makes room.
  server_->Take(AnswerPeer{first->call, DoneAnswer{}});
  EXPECT_TRUE(requester_.Next<PeerAnswered>()->answer.has_value());
  client_->Take(CloseFeed{1});
  ASSERT_TRUE(owner_.Next<FeedDropped>().has_value());
  Ask(4, DoneRequest{BootId(1), {}, {}});
  EXPECT_TRUE(owner_.Next<PeerAsks>().has_value());
  OpenAndAsk(3);
}

// FAULTS D4, G3
TEST_F(PeerLimits, MoreConnectionsThanThereIsRoomFor) {
  client_.reset();
  server_.reset();
  Serve({.connections_max = 2});
  const UniqueFd first = ConnectRaw(server_->address()), second = ConnectRaw(server_->address());
  const UniqueFd third = ConnectRaw(server_->address());
  char byte = 0;
  pollfd ended{third.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 20'000), 1);
  EXPECT_LE(::read(third.get(), &byte, 1), 0);
  EXPECT_EQ(server_->counters().connections_refused, 1u);
}

// FAULTS E5, D4: what it is behind with stays bounded, and the others go on.
TEST_F(PeerLimits, AReaderThatDoesNotReadOn) {
  const uint64_t slow = OpenAndAsk(1);
  client_->SetPeers({{kPeer, server_->address()}, {PeerId(8), server_->address()}});
  client_->Take(OpenFeed{PeerId(8), 2, FeedRequest{BootId(8), BootId(0), 0}});
  const auto asked = owner_.Next<FeedAsked>();
  ASSERT_TRUE(asked.has_value());
  FeedPiece piece = ExamplePiece();
  piece.removes.assign(limits::kKeysPerPiece / 4, 1);  // 2 MiB
  uint64_t sent = 0;
  for (bool ready = true; ready && sent < 100; ++sent) {
    piece.sequence = sent + 1;
    Send(slow, piece);
    ready = owner_.Next<FeedReady>(milliseconds(3000)).has_value();
  }
  EXPECT_LT(sent, 20u) << "a message goes when the last one has gone, into a bounded window";
  ASSERT_TRUE(requester_.Next<FeedArrived>().has_value());
  EXPECT_EQ(requester_.Count<FeedArrived>(), 0u) << "the owner has not stepped with it";

  for (uint64_t i = 1; i <= 3; ++i) {
    Send(asked->stream, ExamplePiece());
    const auto arrived = requester_.Next<FeedArrived>();
    ASSERT_TRUE(arrived.has_value());
    EXPECT_EQ(arrived->stream, 2u);
    client_->FeedStepped(2);
    const auto ready = owner_.Next<FeedReady>();
    ASSERT_TRUE(ready.has_value());
    EXPECT_EQ(ready->stream, asked->stream);
  }
  for (uint64_t i = 2; i <= sent; ++i) {
    client_->FeedStepped(1);
    const auto arrived = requester_.Next<FeedArrived>();
    ASSERT_TRUE(arrived.has_value() && arrived->piece.has_value());
    EXPECT_EQ(arrived->piece->sequence, i) << "in order, none lost";
  }
  EXPECT_EQ(owner_.Next<FeedReady>()->stream, slow);
}

// FAULTS D4: whoever asks when the node stops is told.
TEST_F(PeerLimits, AServerThatStopsTellsItsCallers) {
  OpenAndAsk(1);
  Ask(1, DoneRequest{BootId(1), {}, {}});
  ASSERT_TRUE(owner_.Next<PeerAsks>().has_value());
  const Nanos start = Monotonic();
  server_.reset();
  EXPECT_LT(Monotonic() - start, 10 * kSecond);
  EXPECT_THAT(Answered(1).why, HasSubstr("UNAVAILABLE"));
  const auto ended = requester_.Next<FeedEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_THAT(ended->why, HasSubstr("UNAVAILABLE"));
}

TEST_F(PeerLimits, AServerStopsThoughAReaderDoesNotRead) {
  const uint64_t stream = OpenAndAsk(1);
  FeedPiece piece = ExamplePiece();
  piece.removes.assign(limits::kKeysPerPiece / 2, 1);
  Send(stream, piece);
  ASSERT_TRUE(requester_.Next<FeedArrived>().has_value());
  ASSERT_TRUE(owner_.Next<FeedReady>().has_value());
  for (int i = 0; i < 20; ++i) {
    Send(stream, piece);
    if (!owner_.Next<FeedReady>(milliseconds(300))) break;
  }
  const Nanos start = Monotonic();
  server_.reset();
  EXPECT_LT(Monotonic() - start, 10 * kSecond);
  EXPECT_TRUE(WaitUntil([&] {  // it reads what has come, and then the end
    client_->FeedStepped(1);
    return requester_.Next<FeedEnded>(milliseconds(100)).has_value();
  }));
}

TEST_F(PeerLimits, AClientThatStopsAnswersItsCallsAndFreesTheirs) {
  OpenAndAsk(1);
  Ask(1, DoneRequest{BootId(1), {}, {}});
  ASSERT_TRUE(owner_.Next<PeerAsks>().has_value());
  client_.reset();
  const auto answered = requester_.Next<PeerAnswered>(milliseconds(0));
  ASSERT_TRUE(answered.has_value()) << "before the destructor returns";
  EXPECT_THAT(answered->why, HasSubstr("CANCELLED"));
  EXPECT_TRUE(owner_.Next<FeedDropped>().has_value());
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().gone == 2; }));
}

TEST_F(PeerLimits, APeerThatIsNoLongerNamedLosesItsCallsAndItsFeed) {
  OpenAndAsk(1);
  Ask(1, DoneRequest{BootId(1), {}, {}});
  ASSERT_TRUE(owner_.Next<PeerAsks>().has_value());
  client_->SetPeers({});
  EXPECT_FALSE(Answered(1).answer.has_value());
  EXPECT_TRUE(requester_.Next<FeedEnded>().has_value());
  EXPECT_TRUE(owner_.Next<FeedDropped>().has_value());
}

}  // namespace
}  // namespace pando::control
