// FAULTS D4: what takes long, or much memory, for one session costs the others no more than a turn.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node/core/limits.h"
#include "node/local/send_queue.h"
#include "node/local/session_server.h"
#include "tests/node/local/raw_engine.h"
#include "tests/node/local/server_in_thread.h"
#include "tests/node/local/without_privileges.h"

namespace pando::local {
namespace {

SessionServer::Options OneMessageATurn() {
  SessionServer::Options options;
  options.turn_max = 0;
  return options;
}

std::string Probes(uint64_t count) {
  v1::ClientFrame frame;
  for (uint64_t i = 0; i < count; ++i) *frame.add_messages() = ProbeMessage(1 + i, 0, 8);
  return FrameOf(frame);
}

TEST(Fairness, ALongFrameIsGoneOnWithTurnByTurn) {
  ServerInThread server(1, OneMessageATurn());
  RawEngine engine(server.path());
  ASSERT_TRUE(engine.Attach("a"));
  ASSERT_TRUE(engine.Send(Probes(5) + Probes(1) + Probes(2)));
  for (const uint64_t serial : {1, 2, 3, 4, 5, 1, 1, 2}) {
    const auto frame = engine.Receive();
    ASSERT_TRUE(frame && frame->messages_size() == 1);
    EXPECT_EQ(frame->messages(0).serial(), serial);
  }
  EXPECT_TRUE(engine.IsServed());
  EXPECT_LE(server.StepsInOneTurn(), 2u);
}

TEST(Fairness, AFrameWhoseAnswersNobodyReadsStopsInItsMiddle) {
  SessionServer::Options options;
  options.queue_bytes_max = 64 << 10;
  ServerInThread server(1, options);
  RawEngine stopped(server.path()), good(server.path());
  ASSERT_TRUE(stopped.Attach("stopped"));
  ASSERT_TRUE(good.Attach("good"));
  v1::ClientFrame frame;
  for (uint32_t i = 0; i < limits::kMessagesPerFrame; ++i) {
    v1::Begin* begin = frame.add_messages()->mutable_begin();
    for (uint64_t claim = 1; claim <= 256; ++claim) begin->add_claims(claim);
  }
  ASSERT_TRUE(stopped.Send(FrameOf(frame)));
  ASSERT_TRUE(server.WaitFor([](const CoreStatus& s) { return s.counters.begins > 0; }));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(good.IsServed());
  // A message's answer is some 20 KiB: a mebibyte at once, and what a socket takes.
  EXPECT_LT(server.status().counters.begins, 256u);
  uint32_t answered = 0;
  while (answered < limits::kMessagesPerFrame) {
    const auto answers = stopped.Receive();
    ASSERT_TRUE(answers.has_value()) << "after " << answered;
    answered += static_cast<uint32_t>(answers->messages_size());
  }
  EXPECT_EQ(server.status().counters.begins, limits::kMessagesPerFrame);
}

// Lives as an engine process with several sessions, says much and dies.
[[noreturn]] void SayMuchAndDie(const std::string& path, int sessions, int frames) {
  std::vector<std::unique_ptr<RawEngine>> engines;
  const std::string said = Probes(limits::kMessagesPerFrame);
  bool good = true;
  for (int i = 0; i < sessions; ++i) {
    engines.push_back(std::make_unique<RawEngine>(path));
    good &= engines.back()->Attach("dying-" + std::to_string(i)).has_value();
  }
  for (int i = 0; i < frames; ++i) {
    for (const auto& engine : engines) good &= engine->Send(said);
  }
  ::_exit(good ? 0 : 1);
}

// FAULTS C3: and what it had said counts.
TEST(Fairness, LastWordsAreHeardTurnByTurn) {
  constexpr int kSessions = 8, kFrames = 2;
  ServerInThread server(1, OneMessageATurn());
  RawEngine good(server.path());
  ASSERT_TRUE(good.Attach("good"));
  const pid_t child = ::fork();
  if (child == 0) SayMuchAndDie(server.path(), kSessions, kFrames);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(good.IsServed());
  EXPECT_TRUE(server.WaitFor([](const CoreStatus& s) { return s.sessions == 1; }));
  EXPECT_GE(server.status().counters.probes, uint64_t{kSessions * kFrames} * 1024);
  EXPECT_LE(server.StepsInOneTurn(), 4u * kSessions);
}

TEST(Fairness, TooManyFieldsEndTheirSessionAlone) {
  ServerInThread server;
  RawEngine good(server.path()), bad(server.path());
  ASSERT_TRUE(good.Attach("good"));
  v1::ClientMessage message;
  for (uint64_t i = 0; i <= limits::kFieldsPerFrame; ++i) {
    message.mutable_probe()->mutable_prompt()->add_segments();
  }
  ASSERT_TRUE(bad.Send(FrameOf(message)));
  const auto frame = bad.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).code(), v1::LIMIT) << frame->messages(0).message();
  EXPECT_TRUE(bad.WaitHangUp());
  EXPECT_TRUE(good.IsServed());
}

TEST(Fairness, TheOldestOfTooManyHalfFramesEnds) {
  SessionServer::Options options;
  options.half_frames_bytes_max = 7 << 18;  // three halves and a quarter are more
  ServerInThread server(1, options);
  const std::string whole = FrameOf(ProbeMessage(9, 0, 1 << 18));
  const size_t half = whole.size() / 2;
  std::vector<std::unique_ptr<RawEngine>> engines;
  for (int i = 0; i < 3; ++i) {
    engines.push_back(std::make_unique<RawEngine>(server.path()));
    ASSERT_TRUE(engines[i]->Attach(std::to_string(i)));
  }
  for (const auto& engine : engines) ASSERT_TRUE(engine->Send(whole.substr(0, half)));
  ASSERT_TRUE(engines[2]->Send(whole.substr(half, half / 2)));
  const auto told = engines[0]->Receive();
  ASSERT_TRUE(told && told->messages_size() == 1);
  EXPECT_EQ(told->messages(0).code(), v1::LIMIT) << told->messages(0).message();
  EXPECT_TRUE(engines[0]->WaitHangUp());
  for (const int i : {2, 1}) {
    ASSERT_TRUE(engines[i]->Send(whole.substr(i == 2 ? half + half / 2 : half)));
    const auto answer = engines[i]->Receive();
    ASSERT_TRUE(answer && answer->messages_size() == 1);
    EXPECT_EQ(answer->messages(0).serial(), 9u);
  }
}

TEST(Fairness, WhenUnreadAnswersTakeTooMuchEachSessionMayHaveLittle) {
  SessionServer::Options options;
  options.all_queues_bytes_max = 0;
  ServerInThread server(1, options);
  RawEngine stopped(server.path());
  ASSERT_TRUE(stopped.Attach("stopped"));
  const std::string said = Probes(limits::kMessagesPerFrame);
  int sent = 0;
  constexpr int kFramesMax = 2000;
  while (sent < kFramesMax && stopped.Send(said, {}, 50)) ++sent;
  // An answer is some 10 bytes; alone it might have 16 MiB of them.
  EXPECT_LT(sent, 200);
}

// FAULTS C3: two descriptors each, whether they are open or their process holds something.
TEST(Fairness, ASessionThatHoldsCountsUntilItsProcessEnds) {
  SessionServer::Options options;
  options.sessions_max = 2;
  ServerInThread server(1, options);
  auto holder = std::make_unique<RawEngine>(server.path());
  ASSERT_TRUE(holder->Attach("holder"));
  v1::ClientMessage reserve;
  reserve.mutable_reserve()->mutable_prompt()->set_tokens(TokenBytes(0, 8));
  reserve.mutable_reserve()->set_to(2);
  const auto reserved = holder->Call(reserve);
  ASSERT_TRUE(reserved.has_value());
  v1::ClientMessage begin;
  begin.mutable_begin()->add_claims(reserved->reserve().claim());
  ASSERT_TRUE(holder->Call(begin));
  holder.reset();
  ASSERT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == 1; }));
  RawEngine second(server.path()), third(server.path());
  ASSERT_TRUE(second.Attach("second"));
  const auto refused = third.Receive();
  ASSERT_TRUE(refused && refused->messages_size() == 1);
  EXPECT_EQ(refused->messages(0).code(), v1::LIMIT);
}

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    near.reset(ends[0]);
    far.reset(ends[1]);
  }
  UniqueFd near, far;
};

// Others do not take the descriptors that they were sent: that is no fault of this session.
TEST(SendQueueTest, WaitsWhenTooManyDescriptorsAreOnTheirWay) {
  const UniqueFd extent(::memfd_create("extent", MFD_CLOEXEC));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const WithoutPrivileges without(CAP_SYS_RESOURCE, CAP_SYS_ADMIN);
  std::vector<Pair> unread(4);
  Pair good;
  const std::vector<int> many(100, extent.get());
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (const Pair& pair : unread) {
    SendQueue queue;
    queue.Push(pair.near.get(), "x", many);
  }
  SendQueue queue;
  EXPECT_EQ(queue.Push(good.near.get(), "good", {many.data(), 1}), Io::kLater);
  EXPECT_EQ(queue.Flush(good.near.get()), Io::kLater);
  EXPECT_EQ(queue.bytes(), 4u);
  unread.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(queue.Flush(good.near.get()), Io::kDone);
  std::array<char, 16> buffer;
  std::vector<UniqueFd> fds;
  EXPECT_EQ(ReceiveOnce(good.far.get(), buffer, &fds).bytes, 4u);
  EXPECT_EQ(fds.size(), 1u);
}

}  // namespace
}  // namespace pando::local
