#include <fcntl.h>

#include <fstream>
#include <thread>

#include "client/limits.h"
#include "tests/client/fake_node.h"

namespace pando::client {
namespace {

class AttachTest : public ClientTest {
 protected:
  void StartRefused(pb::Code code) {
    Start();
    client().Poll();
    ASSERT_TRUE(node().Accept());
    node().Answer(node().ReadOne().serial(), [code](auto& m) { m.set_code(code); });
    client().Poll();
    EXPECT_EQ(client().state(), State::kRefused);
  }
};

TEST_F(AttachTest, SendsWhatItKnowsAndItsOwnPidfd) {  // FAULTS C3
  options_.fields = {{"model", "m"}, {"dtype", "bf16"}};
  options_.prefill_tokens_per_s = 9000;
  Start();
  EXPECT_EQ(client().state(), State::kDisconnected);
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttaching);
  ASSERT_TRUE(node().Accept());
  const pb::ClientMessage message = node().ReadOne();
  ASSERT_TRUE(message.has_attach());
  EXPECT_EQ(message.attach().replica_key(), "replica-a");
  EXPECT_EQ(message.attach().role(), pb::BOTH);
  EXPECT_EQ(message.attach().checksum_formula(), limits::kChecksumFormula);
  EXPECT_EQ(message.attach().block_tokens(), 16);
  EXPECT_EQ(message.attach().page_bytes(), kPageBytes);
  EXPECT_EQ(message.attach().fields_size(), 2);
  EXPECT_EQ(message.attach().fields(1).value(), "bf16");
  EXPECT_EQ(message.attach().prefill_tokens_per_s(), 9000);
  EXPECT_EQ(message.attach().replaces(), 0);

  ASSERT_EQ(node().fds().size(), 1u);
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(node().fds()[0].get()));
  std::string word;
  int pid = 0;
  while (info >> word && word != "Pid:") {
  }
  info >> pid;
  EXPECT_EQ(pid, getpid());

  node().AnswerAttach(message.serial(), 11);
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached);
  EXPECT_EQ(client().boot_id(), node().boot_id);
  EXPECT_EQ(client().session(), 11);
  EXPECT_EQ(client().last_error(), "");
}

// FAULTS D1: without a node everything is a miss at once, and a node that comes is found.
TEST_F(AttachTest, WithoutANodeAllIsAMissUntilThereIsOne) {
  node().StopListening();
  Start();
  client().Poll();
  EXPECT_EQ(client().state(), State::kDisconnected);
  EXPECT_NE(client().last_error().find(node().path()), std::string::npos);
  EXPECT_EQ(client().fd(), -1);
  const std::vector<uint32_t> tokens(100);
  auto call = client().StartAcquire(1, {tokens, {}, {}}, 0, 0, Soon());
  ASSERT_TRUE(call.ready());
  EXPECT_EQ(call.get().code, Code::kLost);
  EXPECT_EQ(call.get().blocks, 0u);
  EXPECT_FALSE(client().WaitAttached(NowNanos() + 1'000'000));
  node().Listen();
  AttachAgain(1);
}

// FAULTS D2: an engine that never calls Poll comes back after its node was restarted. It loses what
// was under way, and the call that finds the new node.
TEST_F(AttachTest, AnEngineThatOnlyStartsAndWaitsComesBack) {
  StartAttached(11);
  node().Hangup();
  for (int i = 0; i < 2; ++i) {
    auto lost = client().StartProbe({}, Soon());
    EXPECT_EQ(client().Wait(lost).code, Code::kLost);
  }
  ASSERT_TRUE(node().Accept()) << "nobody looks for the new node";
  node().AnswerAttach(node().ReadOne().serial(), 12);
  auto call = client().StartProbe({}, Soon());
  EXPECT_FALSE(call.ready()) << call.get().message;
  EXPECT_EQ(client().counters().attaches, 2u);
  EXPECT_EQ(client().counters().calls_lost, 2u);
}

// The same for one that has only something to give back.
TEST_F(AttachTest, WhatIsGivenBackFindsTheNodeToo) {
  StartAttached(11);
  Hold hold = BeginHold(71, true, 1);
  node().Hangup();
  client().Poll();
  EXPECT_EQ(client().state(), State::kDraining);
  EXPECT_EQ(client().StartEnd(std::move(hold), Soon()).get().code, Code::kLost);
  client().Abort({});
  EXPECT_TRUE(node().Accept());
}

TEST_F(AttachTest, WaitAttachedEndsWhenTheNodeAnswers) {
  Start();
  std::thread answering([this] {
    while (!node().Accept()) std::this_thread::yield();
    node().AnswerAttach(node().ReadOne().serial(), 5);
  });
  EXPECT_TRUE(client().WaitAttached(Soon()));
  answering.join();
}

TEST_F(AttachTest, ARefusalIsTriedAgainAtTheSlowestPace) {
  options_.retry_max_ns = 3600 * kSecond;
  Start();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  const uint64_t serial = node().ReadOne().serial();
  node().Answer(serial, [](auto& message) {
    message.set_code(pb::INVALID);
    message.set_message("dtype bf16 found, the replica's is fp8");
  });
  client().Poll();
  EXPECT_EQ(client().state(), State::kRefused);
  EXPECT_EQ(client().last_error(), "dtype bf16 found, the replica's is fp8");
  auto call = client().StartProbe({}, Soon());
  ASSERT_TRUE(call.ready());
  EXPECT_EQ(call.get().code, Code::kUnavailable);
  EXPECT_EQ(call.get().message, "dtype bf16 found, the replica's is fp8");
  client().Poll();
  EXPECT_FALSE(node().Accept()) << "it tried again at once";
}

TEST_F(AttachTest, ARefusalForNowIsTriedAgainAsSoonAsAfterALoss) {
  options_.retry_max_ns = 3600 * kSecond;
  StartRefused(pb::UNAVAILABLE);
  AttachAgain(2);
}

TEST_F(AttachTest, ARefusalMayEnd) {
  StartRefused(pb::INVALID);
  AttachAgain(2);
}

TEST_F(AttachTest, ASilentNodeIsGivenUp) {  // FAULTS D1
  options_.attach_timeout_ns = 1;
  Start();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  client().Poll();
  EXPECT_EQ(client().state(), State::kDisconnected);
  EXPECT_NE(client().last_error().find("attach in time"), std::string::npos);
  client().Poll();
  EXPECT_TRUE(node().Accept()) << "it does not try again";
}

// FAULTS D1: an engine's step may take longer than an attach may.
TEST_F(AttachTest, AnAnswerThatWasThereIsInTimeHoweverLateItIsRead) {
  options_.attach_timeout_ns = 1;
  Start();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  node().AnswerAttach(node().ReadOne().serial(), 11);
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached);
}

TEST_F(AttachTest, AnAttachThatTheNodeFoundExpiredIsNoRefusal) {
  Start();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  const pb::ClientMessage message = node().ReadOne();
  EXPECT_GT(message.deadline_ns(), 0u);
  EXPECT_LT(message.deadline_ns(), static_cast<uint64_t>(Soon()));
  node().Answer(message.serial(), [](auto& m) { m.set_code(pb::EXPIRED); });
  client().Poll();
  EXPECT_NE(client().state(), State::kRefused);
  AttachAgain(2);
}

TEST_F(AttachTest, AnotherProtocolIsRefusedByName) {  // FAULTS D8
  Start();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  node().Answer(node().ReadOne().serial(), [](auto& message) {
    message.mutable_attach()->set_session(1);
    message.mutable_attach()->set_protocol(9);
  });
  client().Poll();
  EXPECT_NE(client().state(), State::kAttached);
  EXPECT_NE(client().last_error().find("protocol 9"), std::string::npos) << client().last_error();
}

TEST_F(AttachTest, OptionsThatNoNodeCouldAcceptAreNeverSent) {  // FAULTS G1
  const Options good = options_;
  const auto refused = [&](const char* part) {
    Start();
    EXPECT_EQ(client().state(), State::kRefused);
    EXPECT_NE(client().last_error().find(part), std::string::npos) << client().last_error();
    client().Poll();
    EXPECT_FALSE(node().Accept());
    options_ = good;
  };
  options_.replica_key = "";
  refused("replica_key is empty");
  options_.replica_key = std::string(257, 'k');
  refused("257 bytes in replica_key, allowed are 256");
  options_.replica_key = "\xff";
  refused("not UTF-8");
  options_.world_size = 65;
  refused("65 shards");
  options_.shard = 1;
  refused("shard 1 of world_size 1");
  options_.page_bytes = (8u << 20) + 1;
  refused("bytes in a page");
  options_.block_tokens = 4097;
  refused("tokens in a block");
  options_.fields = {{"layout", std::string(5000, 'x')}};
  refused("bytes in a field");
}

TEST_F(AttachTest, ASocketPathThatIsTooLongIsSaid) {
  options_.socket = std::string(200, 'p');
  Start();
  client().Poll();
  EXPECT_NE(client().last_error().find("200 bytes"), std::string::npos) << client().last_error();
}

TEST_F(AttachTest, AClientMayTakeThePlaceOfAnEarlierOne) {
  StartAttached(11);
  options_.replaces = client().session();
  Start();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  EXPECT_EQ(node().ReadOne().attach().replaces(), 11u);
}

}  // namespace
}  // namespace pando::client
