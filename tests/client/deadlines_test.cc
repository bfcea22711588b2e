#include <set>

#include "tests/client/fake_node.h"

namespace pando::client {
namespace {

class DeadlinesTest : public ClientTest {
 protected:
  // A deadline so near that it has passed once the clock was read again.
  static int64_t Near() { return NowNanos() + 2'000'000; }
  static void Pass(int64_t deadline) {
    while (NowNanos() < deadline) {
      const timespec wait = {0, 200'000};
      nanosleep(&wait, nullptr);
    }
  }
  // Lets a call of the client time out; returns its serial.
  uint64_t TimeOut() {
    const int64_t deadline = Near();
    auto call = client().StartProbe({}, deadline);
    client().Flush();
    const uint64_t serial = node().ReadOne().serial();
    Pass(deadline);
    client().Poll();
    EXPECT_TRUE(call.ready());
    EXPECT_EQ(call.get().code, Code::kLost);
    return serial;
  }
};

// FAULTS D1: past its deadline a call is a miss; the node counts as absent until it answers.
TEST_F(DeadlinesTest, AfterATimeoutTheNodeIsAbsentUntilItAnswersAnything) {
  StartAttached();
  const uint64_t serial = TimeOut();
  EXPECT_EQ(client().state(), State::kAbsent);
  auto lost = client().StartProbe({}, Soon());
  EXPECT_TRUE(lost.ready()) << "calls wait for an absent node";
  EXPECT_EQ(lost.get().code, Code::kLost);
  client().Flush();
  const pb::ClientMessage still_there = node().ReadOne();
  EXPECT_TRUE(still_there.has_abort());
  EXPECT_EQ(still_there.abort().claims_size(), 0) << "it has an effect";
  EXPECT_FALSE(node().HasInput());

  node().Answer(still_there.serial(), [](auto& answer) { answer.mutable_abort(); });
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached);
  node().Answer(serial, [](auto& answer) { answer.set_code(pb::EXPIRED); });
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached) << client().last_error();
  EXPECT_FALSE(client().StartProbe({}, Soon()).ready());
}

// A node refuses a scheduler's message from a worker, and counts that.
TEST_F(DeadlinesTest, AWorkerAsksWithAMessageOfItsOwn) {
  options_.role = Role::kWorker;
  StartAttached();
  TimeOut();
  client().Flush();
  const pb::ClientMessage still_there = node().ReadOne();
  ASSERT_TRUE(still_there.has_end());
  EXPECT_EQ(still_there.end().items_size(), 0);
  node().Answer(still_there.serial(), [](auto& answer) { answer.mutable_end(); });
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached) << client().last_error();
}

TEST_F(DeadlinesTest, TheLateAnswerItselfEndsAbsence) {
  StartAttached();
  const uint64_t serial = TimeOut();
  node().Answer(serial, [](auto& answer) { answer.mutable_probe(); });
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached);
  // Absent once more while the first question is still open: it is not asked twice.
  TimeOut();
  EXPECT_EQ(client().state(), State::kAbsent);
}

TEST_F(DeadlinesTest, WaitEndsAtTheDeadline) {
  StartAttached();
  const int64_t deadline = Near();
  auto call = client().StartProbe({}, deadline);
  EXPECT_EQ(client().Wait(call).code, Code::kLost);
  EXPECT_GE(NowNanos(), deadline);
}

// FAULTS D1: an engine that never calls Poll sees that the node answers again.
TEST_F(DeadlinesTest, AbsenceEndsForAnEngineThatOnlyStartsAndWaits) {
  StartAttached();
  const uint64_t serial = TimeOut();
  auto lost = client().StartProbe({}, Soon());
  EXPECT_EQ(client().Wait(lost).code, Code::kLost);
  node().Answer(serial, [](auto& answer) { answer.mutable_probe(); });
  EXPECT_FALSE(client().StartProbe({}, Soon()).ready());
  EXPECT_EQ(client().state(), State::kAttached);
}

// Answers of an engine that comes too late for each of its calls do not pile up.
TEST_F(DeadlinesTest, WaitReadsAlsoWhenTheCallsTimeIsOver) {
  StartAttached();
  const int64_t deadline = Near();
  auto call = client().StartProbe({}, deadline);
  client().Flush();
  node().Answer(node().ReadOne().serial(), [](auto& answer) { answer.mutable_probe(); });
  Pass(deadline);
  EXPECT_EQ(client().Wait(call).code, Code::kLost);
  EXPECT_EQ(call.get().message, "the answer came too late");
  EXPECT_EQ(client().counters().calls_lost, 1u);
  EXPECT_EQ(client().state(), State::kAttached) << "it has answered";
}

TEST_F(DeadlinesTest, WaitUntilLeavesTheCallAsItIs) {
  StartAttached();
  auto call = client().StartProbe({}, Soon());
  EXPECT_FALSE(client().WaitUntil(call, NowNanos()));
  EXPECT_FALSE(call.ready());
  node().Answer(node().ReadOne().serial(), [](auto& answer) { answer.mutable_probe(); });
  EXPECT_TRUE(client().WaitUntil(call, Soon()));
  EXPECT_EQ(call.get().code, Code::kOk);
}

TEST_F(DeadlinesTest, ADeadlineThatHasPassedIsNotEvenSent) {
  StartAttached();
  auto call = client().StartProbe({}, NowNanos());
  EXPECT_TRUE(call.ready());
  client().Flush();
  EXPECT_FALSE(node().HasInput());
  EXPECT_EQ(client().state(), State::kAttached);
}

// FAULTS C10: a claim that came too late goes back, and the caller never sees it.
TEST_F(DeadlinesTest, ALateClaimIsAborted) {
  StartAttached();
  const std::vector<uint32_t> tokens(100);
  const int64_t deadline = Near();
  auto acquire = client().StartAcquire(1, {tokens, {}, {}}, 0, 0, deadline);
  auto reserve = client().StartReserve(1, {}, {}, 0, 3, 0, deadline);
  client().Flush();
  const pb::ClientFrame frame = node().Read();
  Pass(deadline);
  node().Answer(frame.messages(0).serial(), [](auto& answer) {
    answer.mutable_acquire()->set_claim(21);
    answer.mutable_acquire()->set_blocks(1);
  });
  node().Answer(frame.messages(1).serial(), [](auto& answer) {
    answer.mutable_reserve()->set_claim(22);
    answer.mutable_reserve()->set_to(1);
  });
  client().Poll();
  EXPECT_EQ(acquire.get().code, Code::kLost);
  EXPECT_FALSE(acquire.get().claim);
  EXPECT_FALSE(reserve.get().claim);
  const pb::ClientMessage abort = node().ReadOne();
  ASSERT_EQ(abort.abort().claims_size(), 2);
  EXPECT_EQ(abort.abort().claims(0), 21u);
  EXPECT_EQ(abort.abort().claims(1), 22u);
  EXPECT_EQ(abort.deadline_ns(), 0u);
  EXPECT_EQ(client().counters().given_back, 2u);
}

// FAULTS C10, B6
TEST_F(DeadlinesTest, ALateBeginIsEndedAsFailed) {
  StartAttached();
  SendExtentOnce();
  const int64_t deadline = Near();
  const Claim claims[] = {Named(31), Named(32)};
  auto call = client().StartBegin(claims, deadline);
  client().Flush();
  const uint64_t serial = node().ReadOne().serial();
  Pass(deadline);
  node().Answer(serial, [&](auto& answer) {
    FillBegin(answer, 31, true, 2);
    FillBegin(answer, 32, false, 1);
  });
  client().Poll();
  EXPECT_TRUE(call.get().holds.empty());
  const pb::ClientMessage end = node().ReadOne();
  ASSERT_EQ(end.end().items_size(), 2);
  EXPECT_EQ(end.end().items(0).claim(), 31u);
  EXPECT_TRUE(end.end().items(0).failed());
  EXPECT_EQ(end.end().items(1).claim(), 32u);
  EXPECT_FALSE(end.end().items(1).failed()) << "a load is just released";
}

// FAULTS C1: an answer whose Call was dropped, before or after it came, is given back.
TEST_F(DeadlinesTest, WhatNobodyWaitsForIsGivenBack) {
  StartAttached();
  const std::vector<uint32_t> tokens(100);
  const auto answer_acquire = [&](uint64_t claim) {
    client().Flush();
    node().Answer(node().ReadOne().serial(), [&](auto& answer) {
      answer.mutable_acquire()->set_claim(claim);
      answer.mutable_acquire()->set_blocks(1);
    });
    client().Poll();
  };
  client().StartAcquire(1, {tokens, {}, {}}, 0, 0, Soon());
  answer_acquire(41);
  EXPECT_EQ(node().ReadOne().abort().claims(0), 41u);
  {
    auto unseen = client().StartAcquire(2, {tokens, {}, {}}, 0, 0, Soon());
    answer_acquire(42);
    EXPECT_TRUE(unseen.ready());
    EXPECT_FALSE(node().HasInput());
  }
  client().Poll();
  EXPECT_EQ(node().ReadOne().abort().claims(0), 42u);
  {
    auto taken = client().StartAcquire(3, {tokens, {}, {}}, 0, 0, Soon());
    answer_acquire(43);
    EXPECT_EQ(taken.get().claim, Named(43));
  }
  client().Poll();
  EXPECT_FALSE(node().HasInput()) << "a claim that the engine has taken is its own";
}

// FAULTS C1: what gives back goes out also to a node that is silent.
TEST_F(DeadlinesTest, EndsAbortsAndSettlesGoOutWhileTheNodeIsAbsent) {
  StartAttached();
  Open(9);
  Hold hold = BeginHold(51, true, 1);
  TimeOut();
  ASSERT_EQ(client().state(), State::kAbsent);
  auto end = client().StartEnd(std::move(hold), Soon());
  EXPECT_TRUE(end.ready());
  EXPECT_EQ(end.get().code, Code::kLost);
  const Claim claim = Named(52);
  client().Abort(std::span(&claim, 1));
  EXPECT_TRUE(client().StartSettle(9, {}, Soon()).ready());
  client().Flush();
  std::set<int> bodies;
  while (node().HasInput()) {
    const pb::ClientFrame frame = node().Read();
    for (const auto& message : frame.messages()) {
      bodies.insert(message.body_case());
      EXPECT_EQ(message.deadline_ns(), 0u) << "it would not be executed";
    }
  }
  EXPECT_EQ(bodies, (std::set<int>{pb::ClientMessage::kEnd, pb::ClientMessage::kAbort,
                                   pb::ClientMessage::kSettle}));
}

}  // namespace
}  // namespace pando::client
