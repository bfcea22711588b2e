// Calls and feeds between a PeerServer and a PeerClient over loopback, as they should go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/control/peer_codec.h"
#include "tests/node/control/peer_examples.h"
#include "tests/node/control/peer_pair.h"

namespace pando::control {
namespace {

using testing::HasSubstr;

TEST_F(PeerPair, EveryCallIsAskedAndAnswered) {
  uint64_t call = 100;
  std::set<std::pair<uint64_t, uint64_t>> fresh;
  const std::vector<PeerRequestBody> requests = ExampleRequests();
  for (const PeerRequestBody& request : requests) {
    Ask(++call, request);
    auto asked = owner_.Next<PeerAsks>();
    ASSERT_TRUE(asked.has_value());
    EXPECT_EQ(EncodeRequest(asked->body), EncodeRequest(request));
    fresh.emplace(asked->fresh.high, asked->fresh.low);
    for (const PeerAnswerBody& answer : ExampleAnswers()) {
      if (answer.index() != request.index()) continue;
      server_->Take(AnswerPeer{asked->call, answer});
      const PeerAnswered answered = Answered(call);
      ASSERT_TRUE(answered.answer.has_value()) << answered.why;
      EXPECT_EQ(EncodeAnswer(*answered.answer), EncodeAnswer(answer));
      break;
    }
  }
  EXPECT_EQ(fresh.size(), requests.size()) << "never the same id";
  EXPECT_EQ(fresh.count({0, 0}), 0u);
  EXPECT_EQ(server_->counters().calls, requests.size());
}

TEST_F(PeerPair, AnswersComeInAnyOrder) {
  Ask(1, DoneRequest{BootId(1), {}, {}});
  const auto first = owner_.Next<PeerAsks>();
  Ask(2, DoneRequest{BootId(2), {}, {}});
  const auto second = owner_.Next<PeerAsks>();
  ASSERT_TRUE(first && second);
  server_->Take(AnswerPeer{second->call, DoneAnswer{2}});
  EXPECT_EQ(std::get<DoneAnswer>(*Answered(2).answer).unknown, 2u);
  server_->Take(AnswerPeer{first->call, DoneAnswer{1}});
  EXPECT_EQ(std::get<DoneAnswer>(*Answered(1).answer).unknown, 1u);
}

TEST_F(PeerPair, AFeedGoesOnUntilItsOwnerEndsIt) {
  Open(5);
  const auto asked = owner_.Next<FeedAsked>();
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->request.requester, BootId(1));
  EXPECT_EQ(asked->request.boot, BootId(2));
  EXPECT_EQ(asked->request.sequence, 3u);
  for (uint64_t i = 1; i <= 3; ++i) {
    FeedPiece piece = ExamplePiece();
    piece.sequence = i;
    Send(asked->stream, piece, i == 2 ? std::optional(ExampleTotals()) : std::nullopt);
    const auto ready = owner_.Next<FeedReady>();
    ASSERT_TRUE(ready.has_value());
    EXPECT_EQ(ready->stream, asked->stream);
    const auto arrived = requester_.Next<FeedArrived>();
    ASSERT_TRUE(arrived.has_value());
    EXPECT_EQ(arrived->stream, 5u);
    ASSERT_TRUE(arrived->piece.has_value());
    EXPECT_EQ(arrived->piece->sequence, i);
    EXPECT_EQ(arrived->piece->adds, piece.adds);
    EXPECT_EQ(arrived->totals.has_value(), i == 2);
    client_->FeedStepped(5);
  }
  server_->Take(SendFeed{asked->stream, nullptr, ExampleTotals()});
  const auto counters = requester_.Next<FeedArrived>();
  ASSERT_TRUE(counters.has_value());
  EXPECT_FALSE(counters->piece.has_value());
  EXPECT_TRUE(counters->totals.has_value());
  client_->FeedStepped(5);
  server_->Take(EndFeed{asked->stream, PeerCode::kUnknown, "say hello first"});
  const auto ended = requester_.Next<FeedEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->stream, 5u);
  EXPECT_EQ(ended->why, "NOT_FOUND: say hello first");
  EXPECT_EQ(owner_.Count<FeedDropped>(), 0u) << "not after EndFeed";
}

TEST_F(PeerPair, AClosedFeedIsDroppedAtItsOwnerAndSaysNothingMore) {
  const uint64_t stream = OpenAndAsk(5);
  client_->Take(CloseFeed{5});
  const auto dropped = owner_.Next<FeedDropped>();
  ASSERT_TRUE(dropped.has_value());
  EXPECT_EQ(dropped->stream, stream);
  Send(stream, ExamplePiece());  // too late, harmless
  server_->Take(EndFeed{stream, PeerCode::kUnknown, ""});
  const uint64_t again = OpenAndAsk(6);
  EXPECT_NE(again, stream);
  EXPECT_EQ(requester_.Count<FeedEnded>(), 0u);
  EXPECT_EQ(requester_.Count<FeedArrived>(), 0u);
}

TEST_F(PeerPair, AFeedIsClosedWhileItsLastMessageIsAtTheOwner) {
  const uint64_t stream = OpenAndAsk(5);
  Send(stream, ExamplePiece());
  ASSERT_TRUE(requester_.Next<FeedArrived>().has_value());
  client_->Take(CloseFeed{5});
  client_->FeedStepped(5);
  EXPECT_TRUE(owner_.Next<FeedDropped>().has_value());
  EXPECT_EQ(requester_.Count<FeedEnded>(), 0u);
}

// FAULTS D4, E5: a hundred at once, each in its own order.
TEST_F(PeerPair, AHundredFeeds) {
  constexpr uint32_t kFeeds = 100;
  std::vector<PeersChanged::Peer> peers;
  for (uint32_t i = 1; i <= kFeeds; ++i) peers.push_back({PeerId(i), server_->address()});
  client_->SetPeers(peers);
  const auto open = [this](uint64_t i) {
    client_->Take(
        OpenFeed{PeerId(static_cast<uint32_t>(i)), i, FeedRequest{BootId(i), BootId(0), 0}});
  };
  for (uint32_t i = 1; i <= kFeeds; ++i) open(i);
  for (uint32_t i = 0; i < kFeeds; ++i) {
    std::optional<FeedAsked> asked;
    ASSERT_TRUE(WaitUntil([&] {
      // On a busy host a connection may take longer than it may: it is made again.
      while (const auto ended = requester_.Next<FeedEnded>(std::chrono::milliseconds(0))) {
        open(ended->stream);
      }
      return (asked = owner_.Next<FeedAsked>(std::chrono::milliseconds(100))).has_value();
    })) << i;
    FeedPiece piece = ExamplePiece();
    piece.sequence = asked->request.requester.value();
    Send(asked->stream, piece);
  }
  std::set<uint64_t> arrived;
  for (uint32_t i = 0; i < kFeeds; ++i) {
    const auto news = requester_.Next<FeedArrived>();
    ASSERT_TRUE(news.has_value() && news->piece.has_value()) << i;
    EXPECT_EQ(news->piece->sequence, news->stream);
    arrived.insert(news->stream);
  }
  EXPECT_EQ(arrived.size(), kFeeds);
  client_.reset();
  for (uint32_t i = 0; i < kFeeds; ++i) ASSERT_TRUE(owner_.Next<FeedDropped>().has_value()) << i;
}

TEST_F(PeerPair, AGoodbyeIsHeardThoughItsNodeEnds) {
  Ask(1, GoodbyeRequest{BootId(4), "drained"});
  client_.reset();
  const auto asked = owner_.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(std::get<GoodbyeRequest>(asked->body).reason, "drained");
  EXPECT_TRUE(requester_.Next<PeerAnswered>(std::chrono::milliseconds(0)).has_value());
}

TEST(PeerServerAddress, ThatCannotBeHadIsRefused) {
  Inputs inputs;
  const auto start = [&](const std::string& listen) {
    return PeerServer::Start({.listen = listen, .deliver = inputs.sink()});
  };
  auto first = start("127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string taken = (*first)->address();
  for (const std::string& listen : {taken, std::string("192.0.2.1:0"), std::string("nowhere:1")}) {
    const auto second = start(listen);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(std::string(second.status().message()), HasSubstr(listen));
  }
}

TEST(PeerServerAddress, MayBeIpv6) {
  Inputs owner, requester;
  auto server = PeerServer::Start({.listen = "[::1]:0", .deliver = owner.sink()});
  if (!server.ok()) GTEST_SKIP() << "this host has no IPv6 loopback: " << server.status();
  PeerClient client(requester.sink());
  client.SetPeers({{PeerId(1), (*server)->address()}});
  client.Take(AskPeer{PeerId(1), 1, Monotonic() + 20'000'000'000, GoodbyeRequest{BootId(1), ""}});
  const auto asked = owner.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  (*server)->Take(AnswerPeer{asked->call, GoodbyeAnswer{}});
  const auto answered = requester.Next<PeerAnswered>();
  ASSERT_TRUE(answered.has_value());
  EXPECT_TRUE(answered->answer.has_value()) << answered->why;
}

}  // namespace
}  // namespace pando::control
