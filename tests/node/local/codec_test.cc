#include "node/local/codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "pando/v1/client.pb.h"
#include "tests/node/local/raw_engine.h"

namespace pando::local {
namespace {

template <class T>
T DecodeAs(const v1::ClientMessage& message) {
  RequestBody body;
  const std::optional<Answer> refusal = DecodeRequest(message, &body);
  EXPECT_FALSE(refusal.has_value()) << refusal->message;
  EXPECT_TRUE(std::holds_alternative<T>(body));
  return std::holds_alternative<T>(body) ? std::get<T>(body) : T{};
}

// The refusal's text; empty if the message was taken.
std::string RefusalOf(const v1::ClientMessage& message) {
  RequestBody body;
  const std::optional<Answer> refusal = DecodeRequest(message, &body);
  if (!refusal) return "";
  EXPECT_EQ(refusal->code, Code::kInvalid);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(refusal->body));
  return refusal->message;
}

v1::NodeMessage Encoded(const Answer& answer) {
  v1::NodeMessage message;
  EncodeAnswer(99, answer, &message);
  EXPECT_EQ(message.serial(), 99u);
  return message;
}

template <class T>
std::vector<T> Column(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(DecodeRequest, Attach) {
  v1::ClientMessage message = AttachMessage("engine-7");
  v1::Attach* attach = message.mutable_attach();
  attach->set_protocol_max(3);
  attach->set_role(v1::WORKER);
  attach->set_shard(5);
  attach->set_world_size(8);
  attach->set_prefill_tokens_per_s(1000);
  attach->set_credential("c");
  attach->set_replaces(12);
  const auto request = DecodeAs<AttachRequest>(message);
  EXPECT_EQ(request.protocol_min, 0u);
  EXPECT_EQ(request.protocol_max, 3u);
  EXPECT_EQ(request.checksum_formula, 1u);
  EXPECT_EQ(request.replica_key, "engine-7");
  EXPECT_EQ(request.role, Role::kWorker);
  EXPECT_EQ(request.shard, ShardId(5));
  EXPECT_EQ(request.world_size, 8u);
  EXPECT_EQ(request.block_tokens, 4u);
  EXPECT_EQ(request.page_bytes, Bytes(4096));
  ASSERT_EQ(request.fields.size(), 1u);
  EXPECT_EQ(request.fields[0], std::make_pair(std::string("model"), std::string("m")));
  EXPECT_EQ(request.prefill_tokens_per_s, 1000u);
  EXPECT_EQ(request.credential, "c");
  EXPECT_EQ(request.replaces, SessionId(12));
  EXPECT_FALSE(request.has_pidfd) << "only a descriptor that came makes it true";
}

TEST(DecodeRequest, AcquireWithSegmentsAndExtras) {
  v1::ClientMessage message;
  v1::Acquire* acquire = message.mutable_acquire();
  acquire->set_request(8);
  acquire->set_engine_hit_tokens(3);
  acquire->set_claim_deadline_ns(1234);
  acquire->mutable_prompt()->set_tokens(TokenBytes(0xfffffffe, 2));  // FAULTS G1
  v1::Segment* segment = acquire->mutable_prompt()->add_segments();
  segment->set_scope("tenant/a");
  segment->set_end(2);
  v1::Extra* extra = acquire->mutable_prompt()->add_extras();
  extra->set_block(1);
  extra->set_value(std::string("\0x", 2));
  const auto request = DecodeAs<AcquireRequest>(message);
  EXPECT_EQ(request.request, RequestId(8));
  EXPECT_EQ(request.engine_hit_tokens, 3u);
  EXPECT_EQ(request.claim_deadline, 1234);
  EXPECT_EQ(request.prompt.tokens, (std::vector<uint32_t>{0xfffffffe, 0xffffffff}));
  ASSERT_EQ(request.prompt.segments.size(), 1u);
  EXPECT_EQ(request.prompt.segments[0].scope, "tenant/a");
  EXPECT_EQ(request.prompt.segments[0].end, 2u);
  ASSERT_EQ(request.prompt.extras.size(), 1u);
  EXPECT_EQ(request.prompt.extras[0].block, 1u);
  EXPECT_EQ(request.prompt.extras[0].bytes, std::string("\0x", 2));
}

TEST(DecodeRequest, ProbeReserveBeginAbort) {
  EXPECT_EQ(DecodeAs<ProbeRequest>(ProbeMessage(1, 5, 3)).prompt.tokens,
            (std::vector<uint32_t>{5, 6, 7}));

  v1::ClientMessage reserve;
  reserve.mutable_reserve()->set_request(4);
  reserve.mutable_reserve()->set_append_tokens(TokenBytes(1, 2));
  reserve.mutable_reserve()->set_from(6);
  reserve.mutable_reserve()->set_to(9);
  reserve.mutable_reserve()->set_claim_deadline_ns(77);
  const auto reserved = DecodeAs<ReserveRequest>(reserve);
  EXPECT_EQ(reserved.request, RequestId(4));
  EXPECT_EQ(reserved.append_tokens, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(reserved.from, 6u);
  EXPECT_EQ(reserved.to, 9u);
  EXPECT_EQ(reserved.claim_deadline, 77);

  v1::ClientMessage begin, abort;
  begin.mutable_begin()->add_claims(3);
  abort.mutable_abort()->add_claims(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(DecodeAs<BeginRequest>(begin).claims, std::vector<ClaimId>{ClaimId(3)});
  EXPECT_EQ(DecodeAs<AbortRequest>(abort).claims,
            std::vector<ClaimId>{ClaimId(std::numeric_limits<uint64_t>::max())});
}

TEST(DecodeRequest, EndAndSettle) {
  v1::ClientMessage end;
  v1::EndItem* item = end.mutable_end()->add_items();
  item->set_claim(5);
  item->set_failed(true);
  item->set_checksums(std::string(16, '\1'));
  item->add_bad_pages(1);
  item->add_bad_pages(3);
  end.mutable_end()->add_items()->set_claim(6);
  const auto ended = DecodeAs<EndRequest>(end);
  ASSERT_EQ(ended.items.size(), 2u);
  EXPECT_EQ(ended.items[0].claim, ClaimId(5));
  EXPECT_TRUE(ended.items[0].failed);
  EXPECT_EQ(ended.items[0].checksums, std::vector<uint64_t>(2, 0x0101010101010101));
  EXPECT_EQ(ended.items[0].bad_pages, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(ended.items[1].claim, ClaimId(6));
  EXPECT_FALSE(ended.items[1].failed);

  v1::ClientMessage settle;
  v1::Settle* used = settle.mutable_settle();
  used->set_request(1);
  used->set_engine(2);
  used->set_device(3);
  used->set_host(4);
  used->set_disk(5);
  used->set_peer(6);
  used->set_failed(7);
  used->set_prefill_micros(8);
  const auto settled = DecodeAs<SettleRequest>(settle);
  EXPECT_EQ(settled.request, RequestId(1));
  EXPECT_EQ(settled.engine, 2u);
  EXPECT_EQ(settled.device, 3u);
  EXPECT_EQ(settled.host, 4u);
  EXPECT_EQ(settled.disk, 5u);
  EXPECT_EQ(settled.peer, 6u);
  EXPECT_EQ(settled.failed, 7u);
  EXPECT_EQ(settled.prefill_micros, 8u);
}

// FAULTS G2: what the values cannot say is named to its sender.
TEST(DecodeRequest, RefusesWhatCannotBeSaid) {
  EXPECT_NE(RefusalOf(v1::ClientMessage()), "");

  v1::ClientMessage message;
  for (const int role : {0, 4, -1, 1 << 30}) {
    message = AttachMessage("r");
    message.mutable_attach()->set_role(static_cast<v1::Role>(role));
    EXPECT_NE(RefusalOf(message).find("role"), std::string::npos) << role;
  }
  for (const size_t bytes : {1u, 2u, 3u, 5u, 4097u}) {
    message = ProbeMessage(1, 0, 0);
    message.mutable_probe()->mutable_prompt()->set_tokens(std::string(bytes, 'x'));
    EXPECT_NE(RefusalOf(message).find("tokens"), std::string::npos) << bytes;
    message.mutable_reserve()->set_append_tokens(std::string(bytes, 'x'));
    EXPECT_NE(RefusalOf(message).find("append_tokens"), std::string::npos) << bytes;
    message.mutable_end()->add_items()->set_checksums(std::string(bytes, 'x'));
    EXPECT_NE(RefusalOf(message).find("checksums"), std::string::npos) << bytes;
  }
  message.mutable_acquire()->set_claim_deadline_ns(1ull << 63);
  EXPECT_NE(RefusalOf(message).find("claim_deadline_ns"), std::string::npos);
  message.mutable_acquire()->set_claim_deadline_ns(0);
  message.mutable_acquire()->set_intent(static_cast<v1::Acquire::Intent>(2));
  EXPECT_NE(RefusalOf(message).find("intent"), std::string::npos);
}

TEST(DecodeDeadline, IsATimeBelowTwoToThe63) {
  EXPECT_EQ(DecodeDeadline(0), 0);
  EXPECT_EQ(DecodeDeadline((1ull << 63) - 1), std::numeric_limits<Nanos>::max());
  EXPECT_EQ(DecodeDeadline(1ull << 63), std::nullopt);
}

TEST(EncodeAnswer, EveryBody) {
  const v1::NodeMessage attach = Encoded({Code::kOk, "", AttachAnswer{SessionId(3), 1}});
  EXPECT_EQ(attach.attach().session(), 3u);
  EXPECT_EQ(attach.attach().protocol(), 1u);

  const v1::NodeMessage acquire = Encoded({Code::kOk, "", AcquireAnswer{ClaimId(4), 5, true, 6}});
  EXPECT_EQ(acquire.acquire().claim(), 4u);
  EXPECT_EQ(acquire.acquire().blocks(), 5u);
  EXPECT_TRUE(acquire.acquire().in_flight());
  EXPECT_EQ(acquire.acquire().ticket(), 6u);

  const v1::NodeMessage probe = Encoded({Code::kOk, "", ProbeAnswer{7, true}});
  EXPECT_EQ(probe.probe().blocks(), 7u);
  EXPECT_TRUE(probe.probe().in_flight());

  const v1::NodeMessage reserve =
      Encoded({Code::kOk, "", ReserveAnswer{ClaimId(8), 9, 10, true, true}});
  EXPECT_EQ(reserve.reserve().claim(), 8u);
  EXPECT_EQ(reserve.reserve().from(), 9u);
  EXPECT_EQ(reserve.reserve().to(), 10u);
  EXPECT_TRUE(reserve.reserve().in_flight());
  EXPECT_TRUE(reserve.reserve().full());

  EXPECT_TRUE(Encoded({Code::kOk, "", AbortAnswer{}}).has_abort());
  EXPECT_TRUE(Encoded({Code::kOk, "", SettleAnswer{}}).has_settle());
}

TEST(EncodeAnswer, BeginHasParallelColumns) {
  BeginItem load;
  load.claim = ClaimId(1);
  load.first_block = 2;
  load.page_bytes = Bytes(4096);
  load.pages = {MakePageId(ExtentId(1), 2), PageId(3)};
  load.generations = {Generation(4), Generation(5)};
  load.checksums = {6, 7};
  BeginItem refused;
  refused.claim = ClaimId(9);
  refused.code = Code::kUnknown;
  refused.message = "gone";
  const v1::NodeMessage message = Encoded({Code::kOk, "", BeginAnswer{{load, refused}}});
  ASSERT_EQ(message.begin().items_size(), 2);
  const v1::BeginItem& item = message.begin().items(0);
  EXPECT_EQ(item.claim(), 1u);
  EXPECT_EQ(item.code(), v1::OK);
  EXPECT_FALSE(item.store());
  EXPECT_EQ(item.first_block(), 2u);
  EXPECT_EQ(item.page_bytes(), 4096u);
  EXPECT_EQ(Column<uint32_t>(item.pages()), (std::vector<uint32_t>{1u << 14 | 2, 3}));
  EXPECT_EQ(Column<uint32_t>(item.generations()), (std::vector<uint32_t>{4, 5}));
  EXPECT_EQ(Column<uint64_t>(item.checksums()), (std::vector<uint64_t>{6, 7}));
  EXPECT_EQ(message.begin().items(1).code(), v1::UNKNOWN);
  EXPECT_EQ(message.begin().items(1).message(), "gone");
}

TEST(EncodeAnswer, EveryCode) {
  const std::vector<std::pair<Code, v1::Code>> codes = {
      {Code::kOk, v1::OK},           {Code::kInvalid, v1::INVALID},
      {Code::kLimit, v1::LIMIT},     {Code::kUnknown, v1::UNKNOWN},
      {Code::kExpired, v1::EXPIRED}, {Code::kUnavailable, v1::UNAVAILABLE},
  };
  std::vector<Code> items;
  for (const auto& [code, expected] : codes) {
    const v1::NodeMessage message = Encoded({code, "why", {}});
    EXPECT_EQ(message.code(), expected);
    EXPECT_EQ(message.message(), "why");
    EXPECT_EQ(message.body_case(), v1::NodeMessage::BODY_NOT_SET);
    items.push_back(code);
  }
  const v1::NodeMessage end = Encoded({Code::kOk, "", EndAnswer{items}});
  ASSERT_EQ(end.end().codes_size(), static_cast<int>(codes.size()));
  for (int i = 0; i < end.end().codes_size(); ++i) {
    EXPECT_EQ(end.end().codes(i), codes[static_cast<size_t>(i)].second);
  }
}

}  // namespace
}  // namespace pando::local
