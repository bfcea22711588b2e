// What nodes tell each other, when messages are lost, repeated, changed and late, and who may
// listen at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "node/core/cluster/limits.h"
#include "node/core/hello.h"
#include "tests/cluster/cluster_driver.h"

namespace pando::testing {
namespace {

using ::testing::HasSubstr;

TEST(Feed, TenNodesConvergeUnderRandomLoad) {  // FAULTS E1, E2, E3
  constexpr uint32_t kNodes = 10;
  ClusterDriver::Options options;
  options.extent_pages = 64;  // so that blocks go as fast as they come
  ClusterDriver cluster(kNodes, options);
  std::mt19937 random(5);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (uint32_t step = 0; step < 400; ++step) {
    const uint32_t i = below(kNodes);
    const PromptData prompt = BlocksPrompt(below(30), 1 + below(16));
    if (below(3) == 0) {
      cluster.Get(i, prompt, kSecond);
    } else {
      cluster.Compute(i, prompt);
    }
    if (below(4) == 0) cluster.Advance(below(200) * kMillisecond);
    if (below(100) == 0) cluster.Restart(below(kNodes));
  }
  cluster.Advance(30 * kSecond);
  cluster.ExpectConverged();
  cluster.ExpectBase();
  uint64_t fetched = 0;
  for (uint32_t i = 0; i < kNodes; ++i) {
    fetched += cluster.node(i).status().counters.peer_pages_stored;
  }
  EXPECT_GT(fetched, 100u);
}

// FAULTS E1, E4: what is lost or changed on its way is noticed, and that feed alone is taken anew.
TEST(Feed, LostRepeatedAndChangedPiecesAreNoticed) {
  ClusterDriver cluster(3);
  cluster.Compute(0, BlocksPrompt(1, 4));
  cluster.Advance(kTold);
  enum class Fault { kLost, kOtherKey, kMoreKeys, kOldSequence, kNoBoot };
  uint32_t seed = 10, broken = 0;
  for (const Fault fault :
       {Fault::kLost, Fault::kOtherKey, Fault::kMoreKeys, Fault::kOldSequence, Fault::kNoBoot}) {
    bool done = false;
    cluster.net().on_feed = [&](uint32_t from, uint32_t to, SendFeed* feed) {
      if (done || from != 0 || to != 1 || feed->piece->part != 0) return true;
      done = true;
      FeedPiece piece = *feed->piece;
      if (fault == Fault::kOtherKey) piece.adds.front() ^= 1;
      if (fault == Fault::kMoreKeys) piece.adds.push_back(77);
      if (fault == Fault::kOldSequence) piece.sequence = 0;
      if (fault == Fault::kNoBoot) piece.boot = BootId();
      feed->piece = std::make_shared<const FeedPiece>(piece);
      return fault != Fault::kLost;
    };
    cluster.Compute(0, BlocksPrompt(++seed, 4));
    cluster.Advance(kTold);
    EXPECT_TRUE(done);
    cluster.Compute(0, BlocksPrompt(++seed, 4));  // what is lost is noticed with the next one
    cluster.Advance(2 * kSecond);
    cluster.ExpectConverged();
    EXPECT_EQ(cluster.node(1).status().counters.feeds_broken, ++broken);
    EXPECT_EQ(cluster.node(2).status().counters.feeds_broken, 0u);
    cluster.net().on_feed = nullptr;
  }
  cluster.ExpectBase();
}

// A wrong one is believed by nobody for long: what this life has can be asked of it.
TEST(Feed, AHelloOfAnotherLifeThanItsFeedIsSaidAgain) {  // FAULTS D2, E1, G4
  ClusterDriver cluster(2);
  const PromptData prompt = BlocksPrompt(1, 4);
  cluster.Compute(0, prompt);
  bool done = false;
  cluster.net().on_answer = [&](uint32_t from, uint32_t, PeerAnswerBody* answer) {
    auto* hello = std::get_if<HelloAnswer>(answer);
    if (hello != nullptr && from == 0 && !done) {
      hello->hello.boot = BootId(12345);
      done = true;
    }
    return true;
  };
  cluster.Restart(1);
  cluster.Advance(2 * kSecond);
  EXPECT_TRUE(done);
  EXPECT_NE(cluster.peer(1, 0).boot, BootId(12345));
  cluster.ExpectConverged();
  EXPECT_EQ(cluster.Get(1, prompt), 4u);
}

TEST(Feed, AReaderThatTakesNothingCostsNobodyElse) {  // FAULTS E5, D4
  ClusterDriver cluster(3);
  cluster.net().Partition(0, 1, true);  // shorter than the silence that ends a feed
  for (uint32_t seed = 0; seed < 100; ++seed) {
    cluster.Compute(0, BlocksPrompt(seed, 8));
    cluster.Advance(kTold / 3);
  }
  cluster.Advance(kTold);
  EXPECT_EQ(cluster.peer(2, 0).blocks, 800u) << "others do not wait for it";
  cluster.net().Partition(0, 1, false);
  cluster.Advance(kTold);
  cluster.ExpectConverged();
}

TEST(Feed, AShortBreakGoesOnWhereItWas) {
  uint32_t parts = 0;
  ClusterDriver cluster(2);
  cluster.Compute(0, BlocksPrompt(1, 8));
  cluster.Advance(kTold);
  cluster.net().Partition(0, 1, true);
  cluster.Advance(20 * kSecond);  // silence: the feed ends, the view stands
  EXPECT_EQ(cluster.peer(1, 0).blocks, 8u);
  cluster.net().on_feed = [&](uint32_t, uint32_t to, SendFeed* feed) {
    parts += to == 1 && feed->piece->part > 0 ? 1 : 0;
    return true;
  };
  cluster.net().Partition(0, 1, false);
  cluster.Advance(15 * kSecond);
  cluster.ExpectConverged();
  EXPECT_EQ(parts, 0u) << "no snapshot was needed";
}

TEST(Feed, CountersTravel) {  // FAULTS F2
  ClusterDriver cluster(2);
  const PromptData prompt = BlocksPrompt(1, 8);
  cluster.Compute(0, prompt);
  cluster.Get(0, prompt);
  cluster.Advance(6 * kSecond);
  const PeerStatus seen = cluster.peer(1, 0);
  const ClusterStatus own = cluster.node(0).status().cluster;
  ASSERT_TRUE(seen.totals);
  EXPECT_EQ(seen.totals->account.prompt, prompt.tokens.size());
  EXPECT_EQ(seen.totals->account.prompt, own.totals.account.prompt);
  EXPECT_EQ(seen.totals->account.hit_host, 8 * kBlock);
  EXPECT_EQ(seen.totals->blocks, 8u);
  EXPECT_LT(seen.totals_ago, 6 * kSecond);
  // Ages go on while nothing happens.
  const auto age = [&](Nanos now) {
    return cluster.node(1).core().status(now).cluster.peers.at(0).totals_ago;
  };
  EXPECT_EQ(age(cluster.now() + kSecond), age(cluster.now()) + kSecond);
  // They stand when it has gone, with their age.
  cluster.Crash(0);
  cluster.Advance(60 * kSecond);
  const PeerStatus gone = cluster.peer(1, 0);
  EXPECT_NE(gone.state, PeerState::kConnected);
  ASSERT_TRUE(gone.totals);
  EXPECT_EQ(gone.totals->account.prompt, prompt.tokens.size());
  EXPECT_GT(gone.totals_ago, 50 * kSecond);
}

TEST(Feed, WhatWasSettledIsToldWithinASecond) {  // FAULTS F2
  uint32_t pieces = 0;
  ClusterDriver cluster(2);
  const PromptData prompt = BlocksPrompt(1, 8);
  cluster.Compute(0, prompt);
  cluster.Advance(6 * kSecond);
  cluster.net().on_feed = [&pieces](uint32_t from, uint32_t, SendFeed*) {
    pieces += from == 0 ? 1 : 0;
    return true;
  };
  for (int second = 0; second < 10; ++second) {
    for (int i = 0; i < 5; ++i) cluster.Get(0, prompt);  // nothing new to tell but these
    cluster.Advance(kSecond + 100 * kMillisecond);
    const uint64_t own = cluster.node(0).status().cluster.totals.account.requests;
    EXPECT_EQ(cluster.peer(1, 0).totals->account.requests, own);
  }
  EXPECT_LE(pieces, 15u) << "one a second";
}

// ---- Who may listen and ask

class Stranger : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster.Compute(0, prompt);
    cluster.Advance(kTold);
    node.elsewhere = [this](Output output) {
      if (auto* answer = std::get_if<AnswerPeer>(&output)) answers.push_back(answer->answer);
      if (auto* end = std::get_if<EndFeed>(&output)) ends.push_back(*end);
      if (std::holds_alternative<OfferPages>(output)) ++offers;
    };
  }
  template <class Body>
  Body Ask(PeerRequestBody body) {
    answers.clear();
    node.Input(PeerAsks{++call, GrantId{99, call}, std::move(body)});
    EXPECT_EQ(answers.size(), 1u);
    return std::get<Body>(answers.front());
  }
  PeerHello Hello() {
    PeerHello hello = Ask<HelloAnswer>(HelloRequest{}).hello;
    owner = hello.boot;
    hello.node_name = "stranger";
    hello.boot = BootId(4711);
    return hello;
  }
  GrantRequest Wanted() {
    GrantRequest request;
    request.requester = BootId(4711);
    request.boot = owner;
    request.space_identity = node.core().cache().shape(SpaceId(0)).identity;
    request.shards = 1;
    request.prompt = prompt;
    request.to = 8;
    return request;
  }

  ClusterDriver cluster{1};
  CoreDriver& node = cluster.node(0);
  const PromptData prompt = BlocksPrompt(1, 8);
  std::vector<PeerAnswerBody> answers;
  std::vector<EndFeed> ends;
  uint64_t call = 1000, offers = 0;
  BootId owner;
};

TEST_F(Stranger, IsRefusedByName) {  // FAULTS A7, D8
  PeerHello hello = Hello();
  const auto refused = [&](const PeerHello& with) {
    const auto answer = Ask<HelloAnswer>(HelloRequest{with});
    EXPECT_EQ(answer.code, PeerCode::kIncompatible);
    return answer.message;
  };
  PeerHello other = hello;
  other.seed_check ^= 1;
  EXPECT_THAT(refused(other), HasSubstr("key secret"));
  other = hello;
  other.protocol_min = other.protocol_max = 7;
  EXPECT_THAT(refused(other), HasSubstr("protocol 7"));
  other = hello;
  other.hash_formula = 2;
  EXPECT_THAT(refused(other), HasSubstr("hash formula 2"));
  other = hello;
  other.checksum_formula = 2;
  EXPECT_THAT(refused(other), HasSubstr("checksum formula 2"));
  other = hello;
  other.node_name = "node-0";
  EXPECT_THAT(refused(other), HasSubstr("named node-0"));
  other = hello;
  other.boot = BootId();
  EXPECT_THAT(refused(other), HasSubstr("boot id"));
  EXPECT_EQ(Ask<HelloAnswer>(HelloRequest{hello}).code, PeerCode::kOk);
  EXPECT_EQ(node.status().cluster.guests, 1u);
}

// FAULTS D8: two nodes of one name do not drive each other out.
TEST_F(Stranger, OfAGuestsNameIsRefusedWhileThatOneListens) {
  const PeerHello hello = Hello();
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{hello}).code, PeerCode::kOk);
  node.Input(FeedAsked{1, {hello.boot, BootId(), 0}});
  PeerHello namesake = hello;
  namesake.boot = BootId(4712);
  node.logs.clear();
  for (int again = 0; again < 3; ++again) {
    const auto answer = Ask<HelloAnswer>(HelloRequest{namesake});
    EXPECT_EQ(answer.code, PeerCode::kBusy);
    EXPECT_THAT(answer.message, HasSubstr("named stranger"));
  }
  EXPECT_EQ(node.Logged("peer.refused").size(), 1u);
  EXPECT_TRUE(ends.empty()) << "the first one's feed goes on";
  EXPECT_EQ(node.status().cluster.guests, 1u);
  node.Input(FeedDropped{1});  // its process has gone: this is its next life
  EXPECT_EQ(Ask<HelloAnswer>(HelloRequest{namesake}).code, PeerCode::kOk);
  EXPECT_EQ(node.status().cluster.guests, 1u);
}

// FAULTS D4: who calls itself otherwise leaves its old name to others.
TEST_F(Stranger, GivesUpItsOldName) {
  const PeerHello hello = Hello();
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{hello}).code, PeerCode::kOk);
  PeerHello other = hello;
  other.node_name = "another";
  other.boot = BootId(4712);
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{other}).code, PeerCode::kOk);
  PeerHello renamed = hello;
  renamed.node_name = "another";
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{renamed}).code, PeerCode::kOk);
  node.Input(FeedAsked{1, {renamed.boot, BootId(), 0}});
  PeerHello heir = hello;
  heir.boot = BootId(4713);
  EXPECT_EQ(Ask<HelloAnswer>(HelloRequest{heir}).code, PeerCode::kOk);
  EXPECT_TRUE(ends.empty());
  EXPECT_EQ(node.status().cluster.guests, 2u);
}

TEST_F(Stranger, GetsNothingBeforeHello) {
  Hello();
  EXPECT_EQ(Ask<GrantAnswer>(Wanted()).code, PeerCode::kUnknown);
  node.Input(FeedAsked{1, {BootId(4711), BootId(), 0}});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].code, PeerCode::kUnknown);
  EXPECT_EQ(Ask<DoneAnswer>(DoneRequest{BootId(4711), {GrantId{1, 2}}, {}}).unknown, 1u);
  EXPECT_EQ(offers, 0u);
}

TEST_F(Stranger, GetsOnlyWhatItKnowsTheTokensOf) {  // FAULTS A8, G4
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{Hello()}).code, PeerCode::kOk);
  GrantRequest request = Wanted();
  request.prompt.tokens[3] ^= 1;
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kMiss);
  request = Wanted();
  request.prompt.tokens.resize(5 * kBlock);
  const auto part = Ask<GrantAnswer>(request);
  EXPECT_EQ(part.code, PeerCode::kOk);
  EXPECT_EQ(part.to, 5u) << "what its tokens reach";
  request = Wanted();
  request.from = 8;
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kInvalid);
  request = Wanted();
  request.shards = 2;
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kIncompatible);
  request = Wanted();
  request.space_identity += "x";
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kMiss);
  request = Wanted();
  request.boot = BootId(1);
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kUnknown);
  request = Wanted();
  request.of_grant = GrantId{1, 1};  // guessed
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kUnknown);
  request.of_grant = part.grant;
  const auto again = Ask<GrantAnswer>(request);
  EXPECT_EQ(again.code, PeerCode::kOk);
  EXPECT_EQ(again.to, 5u) << "no more than the grant's tokens";
  EXPECT_EQ(node.status().grants, 2u);
  EXPECT_EQ(offers, 2u);
  // Another guest cannot end them, nor use them.
  PeerHello hello = Hello();
  hello.node_name = "other";
  hello.boot = BootId(4712);
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{hello}).code, PeerCode::kOk);
  EXPECT_EQ(Ask<DoneAnswer>(DoneRequest{BootId(4712), {part.grant}, {}}).unknown, 1u);
  request.requester = BootId(4712);
  EXPECT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kUnknown);
  EXPECT_EQ(node.status().grants, 2u);
}

// A grant's id is 128 random bits and a node gives 4,096 at once: that one of a billion guesses is
// an id is less likely than 2^-86. So a million suffice, and each must be refused and counted.
TEST_F(Stranger, GuessesInVain) {  // FAULTS G3, G4
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{Hello()}).code, PeerCode::kOk);
  ASSERT_EQ(Ask<GrantAnswer>(Wanted()).code, PeerCode::kOk);
  PeerHello hello = Hello();
  hello.node_name = "guesser";
  hello.boot = BootId(4712);
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{hello}).code, PeerCode::kOk);
  std::mt19937_64 random(1);
  const uint64_t guesses = 1'000'000, refused = node.status().counters.grants_refused;
  uint64_t unknown = 0;
  for (uint64_t left = guesses; left > 0;) {
    DoneRequest done{BootId(4712), {}, {}};
    for (; left > 0 && done.grants.size() < limits::kGrantsPerDone; --left) {
      done.grants.push_back({random(), random()});
    }
    unknown += Ask<DoneAnswer>(std::move(done)).unknown;
  }
  EXPECT_EQ(unknown, guesses);
  GrantRequest request = Wanted();
  request.requester = BootId(4712);
  request.prompt = {};
  for (int i = 0; i < 10'000; ++i) {
    request.of_grant = GrantId{random(), random()};
    ASSERT_EQ(Ask<GrantAnswer>(request).code, PeerCode::kUnknown);
  }
  EXPECT_EQ(node.status().counters.grants_refused, refused + 10'000);
  EXPECT_EQ(node.status().grants, 1u);
  EXPECT_EQ(offers, 1u);
}

TEST_F(Stranger, WhoNeverSaysDoneLosesItsGrants) {  // FAULTS D6, C3
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{Hello()}).code, PeerCode::kOk);
  EXPECT_EQ(Ask<GrantAnswer>(Wanted()).code, PeerCode::kOk);
  EXPECT_EQ(node.status().pages.held, 8u);
  std::optional<GrantId> grant;
  node.elsewhere = [&](Output output) {
    if (const auto* revoke = std::get_if<RevokeOffer>(&output)) grant = revoke->grant;
  };
  cluster.Advance(10 * kSecond);
  EXPECT_FALSE(grant);
  cluster.Advance(60 * kSecond);
  ASSERT_TRUE(grant);
  EXPECT_EQ(node.status().pages.held, 8u) << "held until the engine says that it is over";
  node.Input(TransferHappened{GrantEnded{*grant, 0}});
  EXPECT_EQ(node.status().pages.held, 0u);
  cluster.ExpectBase();
}

TEST_F(Stranger, TooMuchAtOnceIsBusy) {
  ASSERT_EQ(Ask<HelloAnswer>(HelloRequest{Hello()}).code, PeerCode::kOk);
  uint32_t given = 0;
  while (given < 100'000) {
    const auto answer = Ask<GrantAnswer>(Wanted());
    if (answer.code == PeerCode::kOk) {
      ++given;
      continue;
    }
    EXPECT_EQ(answer.code, PeerCode::kBusy);
    EXPECT_THAT(answer.message, HasSubstr("ask again later"));
    break;
  }
  EXPECT_EQ(given, static_cast<uint32_t>(kExtentBytes.value() * limits::kGrantShare) / (8 * 4096));
  for (uint64_t stream = 1; stream <= limits::kFeedsPerGuest + 1; ++stream) {
    node.Input(FeedAsked{stream, {BootId(4711), BootId(), 0}});
  }
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].code, PeerCode::kBusy);
  Ask<GoodbyeAnswer>(GoodbyeRequest{BootId(4711), "enough"});
  EXPECT_EQ(ends.size(), 1u + limits::kFeedsPerGuest);
}

// A node without a data address (--no-sharing) tells its counters, and neither what it has nor
// pages.
TEST(NoSharing, NothingIsToldAndNothingIsGranted) {
  CoreDriver node;
  std::vector<PeerAnswerBody> answers;
  node.elsewhere = [&answers](Output output) {
    if (auto* answer = std::get_if<AnswerPeer>(&output)) answers.push_back(answer->answer);
    EXPECT_FALSE(std::holds_alternative<OfferPages>(output));
  };
  node.Input(ClusterStarted{"alone", BootId(5), "", 1});
  const Engine engine = node.StartEngine("engine");
  const PromptData prompt = BlocksPrompt(1, 8);
  EXPECT_EQ(node.Store(engine, prompt), 8u);
  EXPECT_EQ(node.status().cluster.told_blocks, 0u);
  PeerHello hello = FormulasOf("");
  hello.node_name = "stranger";
  hello.boot = BootId(4711);
  node.Input(PeerAsks{1, GrantId{1, 1}, HelloRequest{hello}});
  GrantRequest request;
  request.requester = hello.boot;
  request.boot = BootId(5);
  request.space_identity = node.core().cache().shape(SpaceId(0)).identity;
  request.shards = 1;
  request.prompt = prompt;
  request.to = 8;
  node.Input(PeerAsks{2, GrantId{1, 2}, request});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::get<HelloAnswer>(answers[0]).code, PeerCode::kOk);
  EXPECT_EQ(std::get<GrantAnswer>(answers[1]).code, PeerCode::kMiss);
  EXPECT_EQ(node.status().grants, 0u);
}

// ---- Who is whom

class Addresses : public ::testing::Test {
 protected:
  void SetUp() override {
    node.elsewhere = [this](Output output) {
      if (auto* ask = std::get_if<AskPeer>(&output)) asked[ask->peer] = ask->call;
      if (auto* feed = std::get_if<pando::OpenFeed>(&output)) feeds[feed->peer] = feed->stream;
      if (auto* answer = std::get_if<AnswerPeer>(&output)) {
        own = std::get<HelloAnswer>(answer->answer).hello.boot;
      }
    };
    node.Input(PeerAsks{1, GrantId{1, 1}, HelloRequest{}});
    node.Input(PeersChanged{{{kOne, "a:1"}, {kOther, "b:2"}}});
  }
  // What the address answers to the hello that it was sent.
  PeerStatus Answers(PeerId peer, const std::string& name, uint64_t boot) {
    PeerHello hello = FormulasOf("");
    hello.node_name = name;
    hello.boot = BootId(boot);
    node.Input(PeerAnswered{asked.at(peer), HelloAnswer{PeerCode::kOk, "", hello}, ""});
    return StatusOf(peer);
  }
  PeerStatus StatusOf(PeerId peer) {
    for (const PeerStatus& status : node.status().cluster.peers) {
      if (status.peer == peer) return status;
    }
    ADD_FAILURE() << "no peer " << peer;
    return {};
  }

  static constexpr PeerId kOne{51}, kOther{52};
  ClusterDriver cluster{1};
  CoreDriver& node = cluster.node(0);
  std::map<PeerId, uint64_t> asked, feeds;
  BootId own;
};

// FAULTS F2: it is not counted twice.
TEST_F(Addresses, TwoOfOneNode) {
  EXPECT_EQ(Answers(kOne, "other", 7).state, PeerState::kConnected);
  const PeerStatus second = Answers(kOther, "other", 7);
  EXPECT_EQ(second.state, PeerState::kIncompatible);
  EXPECT_THAT(second.why, HasSubstr("connected at a:1"));
  EXPECT_FALSE(feeds.contains(kOther));
  // The first one goes: the second takes its place.
  node.Input(FeedEnded{feeds.at(kOne), "gone"});
  cluster.Advance(40 * kSecond);
  EXPECT_EQ(Answers(kOther, "other", 7).state, PeerState::kConnected);
}

// An address that moves from another node to this one.
TEST_F(Addresses, OfAnotherThatIsThisNodesNow) {
  EXPECT_EQ(Answers(kOne, "other", 7).state, PeerState::kConnected);
  node.Input(FeedEnded{feeds.at(kOne), "gone"});
  cluster.Advance(2 * kSecond);
  const PeerStatus self = Answers(kOne, "node-0", own.value());
  EXPECT_EQ(self.state, PeerState::kSelf);
  EXPECT_EQ(self.boot, BootId());
  EXPECT_FALSE(self.totals);
}

TEST_F(Addresses, TwoNodesOfOneName) {  // FAULTS D8
  EXPECT_EQ(Answers(kOne, "other", 7).state, PeerState::kConnected);
  const PeerStatus second = Answers(kOther, "other", 8);
  EXPECT_EQ(second.state, PeerState::kIncompatible);
  EXPECT_THAT(second.why, HasSubstr("named other is connected at a:1"));
  EXPECT_EQ(StatusOf(kOne).state, PeerState::kConnected);
}

// A node that drains begins nothing new, whatever is answered late.
TEST_F(Addresses, ThatAnswersOnceTheNodeDrains) {
  node.Input(DrainRequested{});
  EXPECT_NE(Answers(kOne, "other", 7).state, PeerState::kConnected);
  EXPECT_FALSE(feeds.contains(kOne));
  node.ExpectSound();
}

}  // namespace
}  // namespace pando::testing
