#include <cstring>
#include <numeric>
#include <thread>

#include "client/limits.h"
#include "tests/client/fake_node.h"

namespace pando::client {
namespace {

class CallsTest : public ClientTest {
 protected:
  CallsTest() {
    tokens_.resize(100);
    std::iota(tokens_.begin(), tokens_.end(), 0xfffffff0u);  // and over the end of 32 bits
  }
  Prompt prompt() const { return {tokens_, {}, {}}; }
  std::string token_bytes() const {
    return {reinterpret_cast<const char*>(tokens_.data()), tokens_.size() * 4};
  }
  std::vector<uint32_t> tokens_;
};

TEST_F(CallsTest, AcquireCarriesAllOfThePrompt) {
  StartAttached();
  const Segment segments[] = {{"", 40}, {"corpus/a", 60}, {"tenant/b", 100}};
  const Extra extras[] = {{2, "image"}, {5, std::string_view("\0x", 2)}};
  auto call = client().StartAcquire(77, {tokens_, segments, extras}, 32, 12345, Soon());
  EXPECT_FALSE(call.ready());
  EXPECT_EQ(call.get().code, Code::kLost);
  client().Flush();
  const pb::ClientMessage message = node().ReadOne();
  const pb::Acquire& acquire = message.acquire();
  EXPECT_GT(message.deadline_ns(), 0u);
  EXPECT_EQ(acquire.request(), 77u);
  EXPECT_EQ(acquire.engine_hit_tokens(), 32u);
  EXPECT_EQ(acquire.claim_deadline_ns(), 12345u);
  EXPECT_EQ(acquire.prompt().tokens(), token_bytes());
  ASSERT_EQ(acquire.prompt().segments_size(), 3);
  EXPECT_EQ(acquire.prompt().segments(1).scope(), "corpus/a");
  EXPECT_EQ(acquire.prompt().segments(2).end(), 100u);
  ASSERT_EQ(acquire.prompt().extras_size(), 2);
  EXPECT_EQ(acquire.prompt().extras(1).block(), 5u);
  EXPECT_EQ(acquire.prompt().extras(1).value(), std::string("\0x", 2));

  node().Answer(message.serial(), [](auto& answer) {
    answer.mutable_acquire()->set_claim(9);
    answer.mutable_acquire()->set_blocks(6);
    answer.mutable_acquire()->set_in_flight(true);
  });
  client().Poll();
  ASSERT_TRUE(call.ready());
  EXPECT_EQ(call.get().code, Code::kOk);
  EXPECT_EQ(call.get().claim, Named(9));
  EXPECT_EQ(call.get().blocks, 6u);
  EXPECT_TRUE(call.get().in_flight);
}

TEST_F(CallsTest, WhatAnotherComputesIsAwaitedWithItsTicket) {
  StartAttached();
  auto acquire =
      client().StartAcquire(77, prompt(), 0, 0, Soon(), Intent::kCompute, Account::kAgain);
  client().Flush();
  const pb::ClientMessage asked = node().ReadOne();
  EXPECT_EQ(asked.acquire().intent(), pb::Acquire::COMPUTE);
  EXPECT_TRUE(asked.acquire().again());
  node().Answer(asked.serial(), [](auto& answer) {
    answer.mutable_acquire()->set_in_flight(true);
    answer.mutable_acquire()->set_ticket(5);
  });
  client().Poll();
  ASSERT_EQ(acquire.get().ticket, 5u);
  EXPECT_EQ(client().StartAwait(5, Soon(), Soon() - 1).get().code, Code::kInvalid)
      << "there would be no time to answer";
  auto await = client().StartAwait(5, 12345, Soon());
  client().Flush();
  const pb::ClientMessage waits = node().ReadOne();
  EXPECT_EQ(waits.await().ticket(), 5u);
  EXPECT_EQ(waits.await().until_ns(), 12345u);
  node().Answer(waits.serial(), [](auto& answer) {
    answer.mutable_await()->set_claim(9);
    answer.mutable_await()->set_blocks(3);
    answer.mutable_await()->set_in_flight(true);
    answer.mutable_await()->set_peer_from(1);
    answer.mutable_await()->set_peer_to(3);
  });
  client().Poll();
  EXPECT_EQ(await.get().claim, Named(9));
  EXPECT_EQ(await.get().blocks, 3u);
  EXPECT_EQ(await.get().peer_from, 1u);
  EXPECT_EQ(await.get().peer_to, 3u);
  EXPECT_TRUE(await.get().in_flight);
}

// FAULTS C10
TEST_F(CallsTest, TheClaimOfAnAwaitThatNobodyWaitsForIsGivenBack) {
  StartAttached();
  { auto await = client().StartAwait(5, 1, Soon()); }
  client().Flush();
  const pb::ClientMessage waits = node().ReadOne();
  node().Answer(waits.serial(), [](auto& answer) {
    answer.mutable_await()->set_claim(9);
    answer.mutable_await()->set_blocks(3);
  });
  client().Poll();
  client().Flush();
  const pb::ClientMessage abort = node().ReadOne();
  ASSERT_EQ(abort.abort().claims_size(), 1);
  EXPECT_EQ(abort.abort().claims(0), 9u);
}

TEST_F(CallsTest, ProbeReserveAndSettleSayWhatTheyWereGiven) {
  StartAttached();
  Open(77);
  auto probe = client().StartProbe(prompt(), Soon());
  auto fresh = client().StartReserve(0, prompt(), {}, 1, 6, 55, Soon());
  const uint32_t more[] = {1, 2, 3};
  auto open = client().StartReserve(77, {}, more, 2, 4, 0, Soon());
  auto settle =
      client().StartSettle(77, {.engine = 1, .host = 3, .failed = 6, .prefill_micros = 7}, Soon());
  client().Flush();
  const pb::ClientFrame frame = node().Read();
  ASSERT_EQ(frame.messages_size(), 4) << "what is queued goes in one frame";
  EXPECT_EQ(frame.messages(0).probe().prompt().tokens(), token_bytes());
  EXPECT_EQ(frame.messages(1).reserve().prompt().tokens(), token_bytes());
  EXPECT_EQ(frame.messages(1).reserve().from(), 1u);
  EXPECT_EQ(frame.messages(1).reserve().to(), 6u);
  EXPECT_EQ(frame.messages(1).reserve().claim_deadline_ns(), 55u);
  EXPECT_EQ(frame.messages(2).reserve().request(), 77u);
  EXPECT_FALSE(frame.messages(2).reserve().has_prompt());
  EXPECT_EQ(frame.messages(2).reserve().append_tokens(),
            std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12));
  EXPECT_EQ(frame.messages(3).settle().host(), 3u);
  EXPECT_EQ(frame.messages(3).settle().failed(), 6u);
  EXPECT_EQ(frame.messages(3).deadline_ns(), 0u) << "the account is told, however late";

  // Answers in any order, in one frame.
  pb::NodeFrame answers;
  answers.set_boot_id(node().boot_id);
  for (const int i : {3, 1, 0, 2}) {
    pb::NodeMessage* answer = answers.add_messages();
    answer->set_serial(frame.messages(i).serial());
    if (i == 0) answer->mutable_probe()->set_blocks(2);
    if (i == 1) {
      answer->mutable_reserve()->set_claim(4);
      answer->mutable_reserve()->set_to(5);
    }
    if (i == 2) answer->mutable_reserve()->set_full(true);
    if (i == 3) answer->mutable_settle();
  }
  node().SendFrame(answers);
  client().Poll();
  EXPECT_EQ(probe.get().blocks, 2u);
  EXPECT_EQ(fresh.get().claim, Named(4));
  EXPECT_EQ(fresh.get().from, 0u) << "may lie before what was asked for";
  EXPECT_EQ(fresh.get().to, 5u);
  EXPECT_EQ(open.get().code, Code::kOk);
  EXPECT_TRUE(open.get().full);
  EXPECT_EQ(settle.get().code, Code::kOk);
}

// A request is open from its acquire to its settle; the node's no to a second acquire of it leaves
// it open, its no to the first does not.
TEST_F(CallsTest, OnlyOpenRequestsAreReservedForAndSettled) {
  StartAttached();
  const auto open = [&] {
    const Code code = client().StartReserve(5, {}, {}, 2, 2, 0, Soon()).get().code;
    client().Flush();
    if (code == Code::kLost) node().ReadOne();
    return code != Code::kUnknown;
  };
  const auto refuse = [&](Call<AcquireResult> call) {
    client().Flush();
    node().Answer(node().ReadOne().serial(), [](auto& answer) { answer.set_code(pb::INVALID); });
    client().Poll();
    EXPECT_EQ(call.get().code, Code::kInvalid);
  };
  EXPECT_FALSE(open());
  EXPECT_EQ(client().StartSettle(5, {}, Soon()).get().code, Code::kUnknown);
  refuse(client().StartAcquire(5, prompt(), 0, 0, Soon()));
  EXPECT_FALSE(open());
  Open(5);
  EXPECT_TRUE(open());
  refuse(client().StartAcquire(5, prompt(), 0, 0, Soon()));
  EXPECT_TRUE(open());
  EXPECT_FALSE(client().StartSettle(5, {}, Soon()).ready());
  EXPECT_EQ(client().StartSettle(5, {}, Soon()).get().code, Code::kUnknown);
}

TEST_F(CallsTest, AnEmptyPromptAndOneTokenAreOrdinary) {  // FAULTS G1
  StartAttached();
  auto empty = client().StartAcquire(1, {}, 0, 0, Soon());
  auto one = client().StartAcquire(2, {std::span(tokens_).first(1), {}, {}}, 0, 0, Soon());
  client().Flush();
  const pb::ClientFrame frame = node().Read();
  ASSERT_EQ(frame.messages_size(), 2);
  EXPECT_EQ(frame.messages(0).acquire().prompt().tokens(), "");
  EXPECT_EQ(frame.messages(1).acquire().prompt().tokens().size(), 4u);
  for (const auto& message : frame.messages()) {
    node().Answer(message.serial(), [](auto& answer) { answer.mutable_acquire(); });
  }
  client().Poll();
  EXPECT_EQ(empty.get().code, Code::kOk);
  EXPECT_EQ(one.get().blocks, 0u);
}

TEST_F(CallsTest, TheLongestPromptGoesThrough) {  // FAULTS G1
  StartAttached();
  const std::vector<uint32_t> many(limits::kTokensPerPrompt, 0xffffffff);
  auto call = client().StartAcquire(1, {many, {}, {}}, 0, 0, Soon());
  pb::ClientMessage got;
  std::thread reading([&] { got = node().ReadOne(); });
  while (client().Flush(), client().wants_write()) std::this_thread::yield();
  reading.join();
  EXPECT_EQ(got.acquire().prompt().tokens().size(), 4u << 20);
  EXPECT_FALSE(call.ready());
}

// What breaks a limit is answered here, with what was found and what is allowed, and never sent.
TEST_F(CallsTest, WhatBreaksALimitIsNeverSent) {  // FAULTS G1
  StartAttached();
  const auto refused = [&](auto call, Code code, const char* part) {
    ASSERT_TRUE(call.ready()) << part;
    EXPECT_EQ(call.get().code, code) << part;
    EXPECT_NE(call.get().message.find(part), std::string::npos) << call.get().message;
  };
  const std::vector<uint32_t> many(limits::kTokensPerPrompt + 1);
  refused(client().StartAcquire(1, {many, {}, {}}, 0, 0, Soon()), Code::kLimit,
          "1048577 tokens, allowed are 1048576");
  refused(client().StartReserve(1, {}, many, 0, 1, 0, Soon()), Code::kLimit, "1048577 tokens");
  refused(client().StartAcquire(0, prompt(), 0, 0, Soon()), Code::kInvalid, "request 0");
  refused(client().StartAcquire(1, prompt(), 101, 0, Soon()), Code::kInvalid, "longer");
  refused(client().StartReserve(1, {}, {}, 2, 1, 0, Soon()), Code::kInvalid, "2 to 1");
  std::vector<Segment> segments(65);
  refused(client().StartProbe({tokens_, segments, {}}, Soon()), Code::kLimit, "65 segments");
  segments = {{"a", 60}, {"b", 60}, {"c", 100}};
  refused(client().StartProbe({tokens_, segments, {}}, Soon()), Code::kInvalid, "token 60");
  segments = {{"a", 60}, {"b", 99}};
  refused(client().StartProbe({tokens_, segments, {}}, Soon()), Code::kInvalid, "99 of 100");
  const std::string name(257, 's');
  segments = {{name, 100}};
  refused(client().StartProbe({tokens_, segments, {}}, Soon()), Code::kLimit, "257 bytes");
  segments = {{"\xc0\xaf", 100}};
  refused(client().StartProbe({tokens_, segments, {}}, Soon()), Code::kInvalid, "UTF-8");
  const std::string large(4097, 'e');
  const Extra too_large[] = {{0, large}};
  refused(client().StartProbe({tokens_, {}, too_large}, Soon()), Code::kLimit, "4097 bytes");
  const Extra disordered[] = {{3, "a"}, {3, "b"}};
  refused(client().StartProbe({tokens_, {}, disordered}, Soon()), Code::kInvalid, "block 3");
  refused(client().StartBegin({}, Soon()), Code::kInvalid, "no claims");
  std::vector<Claim> claims(1025);
  for (uint64_t i = 0; i < claims.size(); ++i) claims[i] = Named(i + 1);
  refused(client().StartBegin(claims, Soon()), Code::kLimit, "1025 claims");
  claims = {Named(1), Named(2), Named(1)};
  refused(client().StartBegin(claims, Soon()), Code::kInvalid, "claim 1 is named twice");
  claims = {Named(0)};
  refused(client().StartBegin(claims, Soon()), Code::kInvalid, "claim 0");
  refused(client().StartEnd(Hold(), Soon()), Code::kInvalid, "empty hold");
  client().Flush();
  EXPECT_FALSE(node().HasInput());
  EXPECT_EQ(client().state(), State::kAttached);
  EXPECT_EQ(client().counters().calls_refused, 17u);
}

TEST_F(CallsTest, ANodesNoIsPassedOn) {
  StartAttached();
  const std::pair<pb::Code, Code> codes[] = {
      {pb::INVALID, Code::kInvalid},         {pb::LIMIT, Code::kLimit},
      {pb::UNKNOWN, Code::kUnknown},         {pb::EXPIRED, Code::kExpired},
      {pb::UNAVAILABLE, Code::kUnavailable}, {static_cast<pb::Code>(99), Code::kUnavailable}};
  for (const auto& [said, heard] : codes) {
    auto call = client().StartAcquire(1, prompt(), 0, 0, Soon());
    client().Flush();
    node().Answer(node().ReadOne().serial(), [&, said = said](auto& answer) {
      answer.set_code(said);
      answer.set_message("because");
    });
    client().Poll();
    EXPECT_EQ(call.get().code, heard);
    EXPECT_EQ(call.get().message, "because");
    EXPECT_FALSE(call.get().claim);
  }
  EXPECT_EQ(client().state(), State::kAttached);
}

TEST_F(CallsTest, MoreThanAFrameOfMessagesGoesInSeveral) {
  StartAttached();
  std::vector<Call<ProbeResult>> calls;
  for (int i = 0; i < 1500; ++i) calls.push_back(client().StartProbe(prompt(), Soon()));
  int got = 0;
  std::thread reading([&] {
    while (got < 1500) {
      const pb::ClientFrame frame = node().Read();
      EXPECT_LE(frame.messages_size(), 1024);
      if (frame.messages_size() == 0) return;
      got += frame.messages_size();
    }
  });
  while (client().Flush(), client().wants_write()) std::this_thread::yield();
  reading.join();
  EXPECT_EQ(got, 1500);
}

// FAULTS D4, D1: a node that reads nothing costs no memory without bound and no time.
TEST_F(CallsTest, ANodeThatDoesNotReadLosesCallsAndBlocksNobody) {
  StartAttached();
  const std::vector<uint32_t> many(limits::kTokensPerPrompt / 4, 5);  // 1 MiB
  std::vector<Call<AcquireResult>> calls;
  for (int i = 0; i < 40; ++i) {
    calls.push_back(client().StartAcquire(1, {many, {}, {}}, 0, 0, Soon()));
    client().Flush();
  }
  EXPECT_TRUE(client().wants_write());
  ASSERT_TRUE(calls.back().ready());
  EXPECT_EQ(calls.back().get().code, Code::kLost);
  EXPECT_NE(calls.back().get().message.find("queued"), std::string::npos);
  const uint64_t lost = client().counters().calls_lost_full;
  EXPECT_GE(lost, 20u);
  EXPECT_EQ(client().counters().calls_lost, lost);

  // It reads again: what was queued arrives, frame by frame, and new calls go through.
  size_t got = 0;
  std::thread reading([&] {
    while (got < calls.size() - lost) {
      const int messages = node().Read().messages_size();
      if (messages == 0) return;
      got += static_cast<size_t>(messages);
    }
  });
  while (client().Flush(), client().wants_write()) std::this_thread::yield();
  reading.join();
  EXPECT_EQ(got, calls.size() - lost);
  EXPECT_FALSE(client().StartProbe(prompt(), Soon()).ready());
}

// FAULTS D1: the limit of unanswered calls is no dead end for an engine that does not call Poll.
TEST_F(CallsTest, ACallThatFindsTheLimitReachedReadsWhatHasCome) {
  StartAttached();
  pb::NodeFrame answers;
  answers.set_boot_id(node().boot_id);
  for (size_t sent = 0; sent < limits::kCallsOutstanding; sent += limits::kMessagesPerFrame) {
    for (size_t i = 0; i < limits::kMessagesPerFrame; ++i) client().StartProbe({}, Soon());
    client().Flush();
    const pb::ClientFrame frame = node().Read();
    if (sent > 0) continue;
    answers.add_messages()->set_serial(frame.messages(0).serial());
    answers.mutable_messages(0)->mutable_probe();
  }
  auto lost = client().StartProbe({}, Soon());
  EXPECT_EQ(lost.get().code, Code::kLost);
  EXPECT_EQ(client().counters().calls_lost_full, 1u);
  node().SendFrame(answers);
  EXPECT_FALSE(client().StartProbe({}, Soon()).ready());
}

TEST_F(CallsTest, WaitEndsWithTheAnswer) {
  StartAttached();
  auto call = client().StartProbe(prompt(), Soon());
  std::thread answering([this] {
    node().Answer(node().ReadOne().serial(),
                  [](auto& answer) { answer.mutable_probe()->set_blocks(3); });
  });
  EXPECT_EQ(client().Wait(call).blocks, 3u);
  answering.join();
}

TEST_F(CallsTest, AnEmptyCallIsReadyAndLost) {
  Call<AcquireResult> none;
  EXPECT_TRUE(none.ready());
  EXPECT_EQ(none.get().code, Code::kLost);
}

// Bytes may come one at a time.
TEST_F(CallsTest, AFrameMayComeInPieces) {
  StartAttached();
  auto call = client().StartProbe(prompt(), Soon());
  client().Flush();
  pb::NodeFrame frame;
  frame.set_boot_id(node().boot_id);
  frame.add_messages()->set_serial(node().ReadOne().serial());
  frame.mutable_messages(0)->mutable_probe()->set_blocks(1);
  for (const char byte : Framed(frame)) {
    EXPECT_FALSE(call.ready());
    node().SendBytes(std::string_view(&byte, 1));
    client().Poll();
  }
  EXPECT_EQ(call.get().code, Code::kOk);
}

}  // namespace
}  // namespace pando::client
