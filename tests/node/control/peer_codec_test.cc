#include "node/control/peer_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "node/core/cluster/limits.h"
#include "node/core/limits.h"
#include "pando/v1/peer.pb.h"
#include "tests/node/control/peer_examples.h"

namespace pando::control {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T, class Body>
T Get(const std::variant<Body, Malformed>& read) {
  if (const auto* wrong = std::get_if<Malformed>(&read)) {
    ADD_FAILURE() << wrong->message;
    return {};
  }
  return std::get<T>(std::get<Body>(read));
}

template <class Body>
std::string WhyNot(const std::variant<Body, Malformed>& read) {
  const auto* wrong = std::get_if<Malformed>(&read);
  return wrong == nullptr ? "not refused" : wrong->message;
}

PeerCall CallOf(const PeerAnswerBody& body) {
  return static_cast<PeerCall>(body.index());
}

TEST(PeerCodec, EveryRequestAndAnswerComesBack) {
  for (const PeerRequestBody& request : ExampleRequests()) {
    const std::string bytes = EncodeRequest(request);
    const auto read = DecodeRequest(control::CallOf(request), bytes);
    ASSERT_TRUE(std::holds_alternative<PeerRequestBody>(read)) << WhyNot(read);
    EXPECT_EQ(EncodeRequest(std::get<PeerRequestBody>(read)), bytes);
  }
  for (const PeerAnswerBody& answer : ExampleAnswers()) {
    const std::string bytes = EncodeAnswer(answer);
    const auto read = DecodeAnswer(CallOf(answer), bytes);
    ASSERT_TRUE(std::holds_alternative<PeerAnswerBody>(read)) << WhyNot(read);
    EXPECT_EQ(EncodeAnswer(std::get<PeerAnswerBody>(read)), bytes);
  }
}

TEST(PeerCodec, HelloFieldByField) {
  const auto hello = Get<HelloRequest>(DecodeRequest(PeerCall::kHello,
                                                     EncodeRequest(HelloRequest{ExampleHello()})))
                         .hello;
  const PeerHello sent = ExampleHello();
  EXPECT_EQ(hello.protocol_min, 0u);
  EXPECT_EQ(hello.protocol_max, 2u);
  EXPECT_EQ(hello.node_name, "node-a");
  EXPECT_EQ(hello.boot, sent.boot);
  EXPECT_EQ(hello.hash_formula, 1u);
  EXPECT_EQ(hello.seed_check, ~0ull);
  EXPECT_EQ(hello.checksum_formula, 1u);
  EXPECT_EQ(hello.data_address, sent.data_address);
  ASSERT_EQ(hello.spaces.size(), 2u);
  EXPECT_EQ(hello.spaces[0].identity, sent.spaces[0].identity);
  EXPECT_EQ(hello.spaces[0].block_tokens, 16u);
  EXPECT_EQ(hello.spaces[0].shards, 2u);
  EXPECT_EQ(hello.spaces[0].page_bytes, Bytes(65536));
}

TEST(PeerCodec, GrantFieldByField) {
  const auto grant =
      Get<GrantRequest>(DecodeRequest(PeerCall::kGrant, EncodeRequest(ExampleGrant())));
  EXPECT_EQ(grant.requester, BootId(1));
  EXPECT_EQ(grant.boot, BootId(2));
  EXPECT_EQ(grant.space_identity, "identity");
  EXPECT_EQ(grant.shards, 2u);
  EXPECT_FALSE(grant.of_grant.has_value());
  EXPECT_THAT(grant.prompt.tokens, ElementsAre(0, 1, 0xffffffff, 7));
  ASSERT_EQ(grant.prompt.segments.size(), 2u);
  EXPECT_EQ(grant.prompt.segments[1].scope, "tenant");
  EXPECT_EQ(grant.prompt.segments[1].end, 4u);
  ASSERT_EQ(grant.prompt.extras.size(), 2u);
  EXPECT_EQ(grant.prompt.extras[0].bytes, std::string("\0\xff", 2));
  EXPECT_EQ(grant.prompt.extras[1].block, 1u);
  EXPECT_EQ(grant.from, 1u);
  EXPECT_EQ(grant.to, 2u);
  EXPECT_EQ(grant.life, 1'500'000'000);
  EXPECT_EQ(Get<GrantRequest>(DecodeRequest(PeerCall::kGrant, EncodeRequest(ExampleGrantOfGrant())))
                .of_grant,
            (GrantId{5, 6}));

  const auto answer =
      Get<GrantAnswer>(DecodeAnswer(PeerCall::kGrant, EncodeAnswer(ExampleGranted())));
  EXPECT_EQ(answer.boot, BootId(9));
  EXPECT_EQ(answer.grant, (GrantId{7, 8}));
  EXPECT_EQ(answer.from, 1u);
  EXPECT_EQ(answer.to, 3u);
  EXPECT_EQ(answer.page_bytes, Bytes(4096));
  EXPECT_THAT(answer.generations, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(answer.checksums, ElementsAre(11, 12, 13, ~0ull));
  EXPECT_EQ(answer.life, 2'000'000'000);
}

TEST(PeerCodec, FeedFieldByField) {
  const FeedPiece sent = ExamplePiece();
  const auto news = DecodeFeed(EncodeFeed(&sent, ExampleTotals()));
  ASSERT_TRUE(std::holds_alternative<FeedNews>(news)) << WhyNot(news);
  const FeedPiece& piece = *std::get<FeedNews>(news).piece;
  EXPECT_EQ(piece.boot, sent.boot);
  EXPECT_EQ(piece.sequence, sent.sequence);
  EXPECT_EQ(piece.part, sent.part);
  EXPECT_TRUE(piece.last);
  EXPECT_EQ(piece.removes, sent.removes);
  EXPECT_EQ(piece.adds, sent.adds);
  EXPECT_EQ(piece.prefill_removes, sent.prefill_removes);
  EXPECT_EQ(piece.prefill_adds, sent.prefill_adds);
  EXPECT_EQ(piece.held, sent.held);
  EXPECT_EQ(piece.prefilling, sent.prefilling);
  EXPECT_EQ(EncodeFeed(nullptr, std::get<FeedNews>(news).totals),
            EncodeFeed(nullptr, ExampleTotals()));

  const auto totals = DecodeFeed(EncodeFeed(nullptr, NodeTotals{}));
  ASSERT_TRUE(std::holds_alternative<FeedNews>(totals)) << WhyNot(totals);
  EXPECT_FALSE(std::get<FeedNews>(totals).piece.has_value());
  EXPECT_TRUE(std::get<FeedNews>(totals).totals.has_value());

  const auto request = DecodeFeedRequest(EncodeFeedRequest({BootId(1), BootId(2), 3}));
  ASSERT_TRUE(std::holds_alternative<FeedRequest>(request)) << WhyNot(request);
  EXPECT_EQ(std::get<FeedRequest>(request).boot, BootId(2));
  EXPECT_EQ(std::get<FeedRequest>(request).sequence, 3u);
}

TEST(PeerCodec, LongTextsAreCutWhenTheyAreSent) {
  const std::string bytes = EncodeRequest(GoodbyeRequest{BootId(1), std::string(10'000, 'x')});
  EXPECT_THAT(Get<GoodbyeRequest>(DecodeRequest(PeerCall::kGoodbye, bytes)).reason,
              AllOf(HasSubstr("xxx"), HasSubstr("...")));
}

// A message of the wire, made wrong, and why it is refused.
template <class Message>
std::string Refused(PeerCall call, const PeerRequestBody& body,
                    const std::function<void(Message*)>& change) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(EncodeRequest(body)));
  change(&message);
  return WhyNot(DecodeRequest(call, message.SerializeAsString()));
}
std::string RefusedGrant(const std::function<void(v1::GrantRequest*)>& change) {
  return Refused<v1::GrantRequest>(PeerCall::kGrant, ExampleGrant(), change);
}
std::string RefusedHello(const std::function<void(v1::HelloRequest*)>& change) {
  return Refused<v1::HelloRequest>(PeerCall::kHello, HelloRequest{ExampleHello()}, change);
}

// FAULTS G2, E4: said by name, with what is allowed.
TEST(PeerCodec, MalformedRequests) {
  EXPECT_THAT(RefusedGrant([](auto* m) { m->mutable_prompt()->mutable_tokens()->push_back('x'); }),
              AllOf(HasSubstr("prompt.tokens: found 17"), HasSubstr("multiple of 4")));
  EXPECT_THAT(
      RefusedGrant([](auto* m) {
        m->mutable_prompt()->set_tokens(std::string(4 * (limits::kTokensPerPrompt + 1), 'x'));
      }),
      AllOf(HasSubstr("prompt.tokens"), HasSubstr("allowed are 0 to 1048576")));
  EXPECT_THAT(RefusedGrant([](auto* m) {
                m->mutable_prompt()->mutable_segments(0)->set_scope(std::string(257, 'x'));
              }),
              HasSubstr("prompt.segments.scope"));
  EXPECT_THAT(RefusedGrant([](auto* m) {
                for (int i = 0; i < 64; ++i) m->mutable_prompt()->add_segments();
              }),
              HasSubstr("prompt.segments"));
  EXPECT_THAT(RefusedGrant([](auto* m) {
                m->mutable_prompt()->mutable_extras(0)->set_value(std::string(4097, 'x'));
              }),
              HasSubstr("prompt.extras.value"));
  EXPECT_THAT(RefusedGrant([](auto* m) {
                for (int i = 0; i < 3; ++i) m->mutable_prompt()->add_extras();
              }),
              HasSubstr("prompt.extras"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->set_requester_boot_id(0); }),
              HasSubstr("requester_boot_id: found 0"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->set_boot_id(0); }), HasSubstr("boot_id: found 0"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->set_from(2); }), HasSubstr("to: found 2"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->set_from(0xffffffff); }), HasSubstr("to: found 2"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->set_life_ms(0xffffffff); }), HasSubstr("life_ms"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->set_shards(0); }), HasSubstr("shards: found 0"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->clear_space_identity(); }),
              HasSubstr("space_identity"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->clear_prompt(); }), HasSubstr("chain: found none"));
  EXPECT_THAT(RefusedGrant([](auto* m) { m->mutable_of_grant(); }), HasSubstr("of_grant: found 0"));

  EXPECT_THAT(RefusedHello([](auto* m) { m->clear_hello(); }), HasSubstr("hello: found none"));
  EXPECT_THAT(RefusedHello([](auto* m) { m->mutable_hello()->set_protocol_min(3); }),
              HasSubstr("protocol_min"));
  EXPECT_THAT(
      RefusedHello([](auto* m) { m->mutable_hello()->set_node_name(std::string(65, 'x')); }),
      HasSubstr("node_name"));
  EXPECT_THAT(RefusedHello([](auto* m) { m->mutable_hello()->set_boot_id(0); }),
              HasSubstr("boot_id"));
  EXPECT_THAT(
      RefusedHello([](auto* m) { m->mutable_hello()->mutable_spaces(1)->set_page_bytes(0); }),
      HasSubstr("page_bytes"));
  EXPECT_THAT(RefusedHello([](auto* m) {
                for (int i = 0; i < 64; ++i) m->mutable_hello()->add_spaces();
              }),
              HasSubstr("hello.spaces"));
  EXPECT_THAT(WhyNot(DecodeRequest(PeerCall::kDone, "\xff\xff")), HasSubstr("no DoneRequest"));
  DoneRequest many{BootId(1), std::vector<GrantId>(limits::kGrantsPerDone + 1, GrantId{1, 1}), {}};
  EXPECT_THAT(WhyNot(DecodeRequest(PeerCall::kDone, EncodeRequest(many))), HasSubstr("grants"));
}

// FAULTS G4: what a peer that lies answers.
TEST(PeerCodec, MalformedAnswers) {
  const auto refused = [](const std::function<void(GrantAnswer*)>& change) {
    GrantAnswer answer = ExampleGranted();
    change(&answer);
    return WhyNot(DecodeAnswer(PeerCall::kGrant, EncodeAnswer(answer)));
  };
  EXPECT_THAT(refused([](auto* a) { a->generations.pop_back(); }),
              HasSubstr("found 3 beside 4 checksums"));
  EXPECT_THAT(refused([](auto* a) { a->to = 4, a->from = 1; }), HasSubstr("for 3 blocks"));
  EXPECT_THAT(refused([](auto* a) { a->to = a->from; }), HasSubstr("to: found 1"));
  EXPECT_THAT(refused([](auto* a) { a->boot = BootId(0); }), HasSubstr("boot_id"));
  EXPECT_THAT(refused([](auto* a) { a->grant = {}; }), HasSubstr("grant"));
  EXPECT_THAT(refused([](auto* a) { a->page_bytes = Bytes(limits::kPageBytes + 1); }),
              HasSubstr("page_bytes"));
  EXPECT_THAT(refused([](auto* a) { a->code = static_cast<PeerCode>(99); }), HasSubstr("code"));
}

TEST(PeerCodec, MalformedFeed) {
  const auto refused = [](const std::function<void(v1::FeedMessage*)>& change) {
    const FeedPiece piece = ExamplePiece();
    v1::FeedMessage message;
    EXPECT_TRUE(message.ParseFromString(EncodeFeed(&piece, ExampleTotals())));
    change(&message);
    return WhyNot(DecodeFeed(message.SerializeAsString()));
  };
  EXPECT_THAT(refused([](auto* m) { m->set_adds("1234567"); }),
              AllOf(HasSubstr("adds: found 7"), HasSubstr("multiple of 8")));
  EXPECT_THAT(refused([](auto* m) { m->set_boot_id(0); }), HasSubstr("boot_id"));
  EXPECT_THAT(refused([](auto* m) { m->set_part(0); }), HasSubstr("last"));
  const std::string most(8 * limits::kKeysPerPiece, 'x');
  EXPECT_THAT(refused([&](auto* m) { m->set_adds(most); }), HasSubstr("keys of a message"));
  EXPECT_THAT(WhyNot(DecodeFeed("")), HasSubstr("boot_id"));
}

}  // namespace
}  // namespace pando::control
