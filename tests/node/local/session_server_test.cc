// Sessions over real sockets: what each of them may get wrong, and that nobody else notices.
#include "node/local/session_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "node/core/limits.h"
#include "tests/node/local/raw_engine.h"
#include "tests/node/local/server_in_thread.h"

namespace pando::local {
namespace {

void ExpectAttached(RawEngine* engine, const std::string& key) {
  const auto answer = engine->Attach(key);
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->code(), v1::OK) << answer->message();
  ASSERT_TRUE(answer->has_attach());
}

TEST(SessionServer, AttachesAndAnswersWithItsBootId) {
  ServerInThread server;
  RawEngine engine(server.path());
  const UniqueFd pidfd = OwnPidfd();
  ASSERT_TRUE(engine.Send(FrameOf(AttachMessage("a", 42)), {pidfd.get()}));
  const auto frame = engine.Receive();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->boot_id(), ServerInThread::kBootId);
  ASSERT_EQ(frame->messages_size(), 1);
  EXPECT_EQ(frame->messages(0).serial(), 42u);
  EXPECT_TRUE(frame->messages(0).has_attach()) << frame->messages(0).message();
  EXPECT_TRUE(engine.IsServed());
  EXPECT_EQ(server.status().replicas, 1u);
}

TEST(SessionServer, AnswersOfOneFrameComeInOneFrame) {
  SessionServer::Options options;
  options.turn_max = 10'000'000'000;  // however slow the machine is now
  ServerInThread server(1, options);
  RawEngine engine(server.path());
  ExpectAttached(&engine, "a");
  v1::ClientFrame frame;
  for (uint64_t serial = 10; serial < 15; ++serial) {
    *frame.add_messages() = ProbeMessage(serial, 0, 8);
  }
  ASSERT_TRUE(engine.Send(FrameOf(frame)));
  const auto answers = engine.Receive();
  ASSERT_TRUE(answers.has_value());
  ASSERT_EQ(answers->messages_size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(answers->messages(i).serial(), 10u + i);
}

TEST(SessionServer, AnExpiredRequestIsNotExecuted) {
  ServerInThread server;
  RawEngine engine(server.path());
  ExpectAttached(&engine, "a");
  v1::ClientMessage late = ProbeMessage(5, 0, 8);
  late.set_deadline_ns(1);
  const auto answer = engine.Call(late);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code(), v1::EXPIRED);
}

// ---- What comes with an attach

TEST(SessionServer, AttachWithoutPidfdIsRefusedAndMayBeTriedAgain) {
  ServerInThread server;
  RawEngine engine(server.path());
  const auto none = engine.Call(AttachMessage("a"));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->code(), v1::INVALID);
  EXPECT_NE(none->message().find("found 0 file descriptors"), std::string::npos);
  ExpectAttached(&engine, "a");
}

TEST(SessionServer, AttachWithTwoFdsOrAnotherKindIsRefused) {
  ServerInThread server;
  RawEngine engine(server.path());
  const UniqueFd pidfd = OwnPidfd();
  ASSERT_TRUE(engine.Send(FrameOf(AttachMessage("a")), {pidfd.get(), pidfd.get()}));
  auto frame = engine.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_NE(frame->messages(0).message().find("found 2 file descriptors"), std::string::npos);

  const UniqueFd memfd(::memfd_create("not-a-pidfd", MFD_CLOEXEC));
  ASSERT_TRUE(engine.Send(FrameOf(AttachMessage("a")), {memfd.get()}));
  frame = engine.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).code(), v1::INVALID);
  EXPECT_NE(frame->messages(0).message().find("no pidfd"), std::string::npos);
  ExpectAttached(&engine, "a");
}

// FAULTS C3: a life line that is another's would free pages that are in use, or never free them.
TEST(SessionServer, AttachWithThePidfdOfAnotherProcessIsRefused) {
  ServerInThread server;
  RawEngine engine(server.path());
  const UniqueFd other(static_cast<int>(::syscall(SYS_pidfd_open, 1, 0)));
  ASSERT_TRUE(other.valid());
  ASSERT_TRUE(engine.Send(FrameOf(AttachMessage("a")), {other.get()}));
  const auto frame = engine.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).code(), v1::INVALID);
  EXPECT_NE(frame->messages(0).message().find("a pidfd of process 1; allowed is only that of " +
                                              std::to_string(::getpid())),
            std::string::npos)
      << frame->messages(0).message();
  ExpectAttached(&engine, "a");
}

// FAULTS E1: the pidfd came, but this process had no number left for it.
TEST(SessionServer, AttachWithoutRoomForItsPidfdMayBeTriedAgain) {
  ServerInThread server;
  RawEngine engine(server.path());
  ASSERT_TRUE(engine.Send(FrameOf(ProbeMessage(7, 0, 4)))) << "it is accepted";
  ASSERT_TRUE(engine.Receive().has_value());
  const UniqueFd pidfd = OwnPidfd();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = UniqueFd(::dup(0)).get();
  const rlimit none{static_cast<rlim_t>(lowest), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(engine.Send(FrameOf(AttachMessage("a")), {pidfd.get()}));
  const auto frame = engine.Receive();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).code(), v1::UNAVAILABLE) << frame->messages(0).message();
  EXPECT_NE(frame->messages(0).message().find("limit is " + std::to_string(lowest)),
            std::string::npos)
      << frame->messages(0).message();
  ExpectAttached(&engine, "a");
}

size_t OpenFds() {
  size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(SessionServer, StrayFdsAreClosed) {
  ServerInThread server;
  RawEngine engine(server.path());
  ExpectAttached(&engine, "a");
  const UniqueFd stray(::memfd_create("stray", MFD_CLOEXEC));
  const size_t before = OpenFds();
  for (int i = 0; i < 20; ++i) {
    const std::vector<int> many(static_cast<size_t>(i) + 1, stray.get());
    ASSERT_TRUE(engine.Send(FrameOf(ProbeMessage(7, 0, 4)), many));
    ASSERT_TRUE(engine.Receive().has_value());
  }
  EXPECT_EQ(OpenFds(), before);
}

// FAULTS C3: and no longer than one of their sessions is there.
TEST(SessionServer, ProcessesAreWatchedOnceHoweverOftenTheyAttach) {
  ServerInThread server;
  const size_t before = OpenFds();
  for (int i = 0; i < 20; ++i) {
    RawEngine engine(server.path());
    ExpectAttached(&engine, "replica-" + std::to_string(i));
  }
  ASSERT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == 20; }));
  EXPECT_TRUE(server.WaitFor([&](const CoreStatus&) { return OpenFds() == before; }));
  RawEngine first(server.path()), second(server.path());
  ExpectAttached(&first, "first");
  ExpectAttached(&second, "second");
  EXPECT_EQ(OpenFds(), before + 5) << "two ends of two sockets, one pidfd";
}

// ---- FAULTS G2: garbage

TEST(SessionServer, AFrameThatIsTooLongEndsItsSessionAlone) {
  ServerInThread server;
  RawEngine good(server.path()), bad(server.path());
  ExpectAttached(&good, "good");
  ExpectAttached(&bad, "bad");
  const uint32_t length = limits::kFrameBytes + 1;
  ASSERT_TRUE(bad.Send({reinterpret_cast<const char*>(&length), sizeof(length)}));
  const auto frame = bad.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).serial(), 0u);
  EXPECT_EQ(frame->messages(0).code(), v1::LIMIT);
  EXPECT_NE(frame->messages(0).message().find("8388609"), std::string::npos);
  EXPECT_TRUE(bad.WaitHangUp());
  EXPECT_TRUE(good.IsServed());
  EXPECT_EQ(server.Logged("session.refused"), 1u);
}

TEST(SessionServer, GarbageEndsItsSessionAlone) {
  ServerInThread server;
  RawEngine good(server.path()), bad(server.path());
  ExpectAttached(&good, "good");
  const uint32_t length = 8;
  std::string garbage(reinterpret_cast<const char*>(&length), sizeof(length));
  garbage += std::string(8, '\xff');
  ASSERT_TRUE(bad.Send(garbage));
  const auto frame = bad.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).code(), v1::INVALID);
  EXPECT_TRUE(bad.WaitHangUp());
  EXPECT_TRUE(good.IsServed());
}

TEST(SessionServer, TooManyMessagesInAFrame) {
  ServerInThread server;
  RawEngine engine(server.path());
  ExpectAttached(&engine, "a");
  v1::ClientFrame frame;
  for (uint32_t i = 0; i < limits::kMessagesPerFrame; ++i) {
    *frame.add_messages() = ProbeMessage(i + 1, 0, 1);
  }
  ASSERT_TRUE(engine.Send(FrameOf(frame)));
  // In one frame, or in more if they took longer than a turn.
  uint32_t answered = 0;
  while (answered < limits::kMessagesPerFrame) {
    const auto answers = engine.Receive();
    ASSERT_TRUE(answers.has_value());
    answered += static_cast<uint32_t>(answers->messages_size());
  }
  EXPECT_EQ(answered, limits::kMessagesPerFrame);

  *frame.add_messages() = ProbeMessage(1, 0, 1);
  ASSERT_TRUE(engine.Send(FrameOf(frame)));
  const auto refused = engine.Receive();
  ASSERT_TRUE(refused && refused->messages_size() == 1);
  EXPECT_EQ(refused->messages(0).code(), v1::LIMIT);
  EXPECT_TRUE(engine.WaitHangUp());
}

TEST(SessionServer, HalfAFrameThenTheEnd) {
  ServerInThread server;
  RawEngine good(server.path());
  ExpectAttached(&good, "good");
  const std::string frame = FrameOf(ProbeMessage(1, 0, 4000));
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4}, size_t{5}, frame.size() - 1}) {
    RawEngine bad(server.path());
    ASSERT_TRUE(bad.Send(std::string_view(frame).substr(0, bytes)));
  }
  ASSERT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == 5; }));
  EXPECT_TRUE(good.IsServed());
}

// FAULTS G2, G3: refused, counted, each under its own reason.
TEST(SessionServer, WhatIsRefusedIsCounted) {
  ServerInThread server;
  const auto send = [&](const std::string& bytes) {
    RawEngine bad(server.path());
    EXPECT_TRUE(bad.Send(bytes));
  };
  send(std::string(4, '\xff'));
  send(std::string("\x02\0\0\0\xff\xff", 6));
  v1::ClientFrame crowd;
  for (uint32_t i = 0; i <= limits::kMessagesPerFrame; ++i) crowd.add_messages();
  send(FrameOf(crowd));
  send(FrameOf(ProbeMessage(1, 0, 8)).substr(0, 9));

  RawEngine engine(server.path());
  v1::ClientMessage odd = ProbeMessage(1, 0, 8);
  odd.mutable_probe()->mutable_prompt()->set_tokens("abc");
  v1::ClientMessage never = ProbeMessage(2, 0, 8);
  never.set_deadline_ns(~0ull);
  v1::ClientMessage guessed;
  guessed.mutable_begin()->add_claims(77);
  ASSERT_TRUE(engine.Call(odd) && engine.Call(never));
  ASSERT_TRUE(engine.Call(AttachMessage("a"))) << "without a pidfd";
  ExpectAttached(&engine, "a");
  ASSERT_TRUE(engine.Call(guessed));
  ASSERT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == 4; }));

  const CoreCounters counters = server.status().counters;
  using What = RefusedOutside::What;
  const auto refused = [&](What what) {
    return counters.refused_outside[static_cast<size_t>(what)];
  };
  EXPECT_EQ(refused(What::kFrameTooLong), 1u);
  EXPECT_EQ(refused(What::kFrameMalformed), 1u);
  EXPECT_EQ(refused(What::kFrameTooManyMessages), 1u);
  EXPECT_EQ(refused(What::kFrameCutShort), 1u);
  EXPECT_EQ(refused(What::kMessageMalformed), 2u);
  EXPECT_EQ(refused(What::kMessageWrongPidfd), 1u);
  EXPECT_EQ(counters.requests_refused.unknown, 1u);
  EXPECT_EQ(counters.requests_refused.total(), 1u);
  EXPECT_EQ(counters.attach_refused.total(), 0u);
}

// A message of each kind, as bytes of one frame's payload.
std::string ValidPayload() {
  v1::ClientFrame frame;
  *frame.add_messages() = AttachMessage("a", 1);
  *frame.add_messages() = ProbeMessage(2, 0, 16);
  v1::ClientMessage* acquire = frame.add_messages();
  acquire->mutable_acquire()->set_request(5);
  acquire->mutable_acquire()->mutable_prompt()->set_tokens(TokenBytes(0, 16));
  acquire->mutable_acquire()->mutable_prompt()->add_segments()->set_end(16);
  v1::ClientMessage* reserve = frame.add_messages();
  reserve->mutable_reserve()->set_request(5);
  reserve->mutable_reserve()->set_to(3);
  frame.add_messages()->mutable_begin()->add_claims(1);
  v1::EndItem* item = frame.add_messages()->mutable_end()->add_items();
  item->set_claim(1);
  item->set_checksums(std::string(24, 'c'));
  frame.add_messages()->mutable_abort()->add_claims(1);
  frame.add_messages()->mutable_settle()->set_request(5);
  std::string bytes;
  frame.SerializeToString(&bytes);
  return bytes;
}

std::string FrameOfPayload(const std::string& payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + payload;
}

// Sends `payload` in a session of its own, sometimes attached, and waits until the node is done
// with it.
void SendAlone(ServerInThread* server, const std::string& payload, bool with_pidfd) {
  RawEngine engine(server->path());
  ASSERT_TRUE(engine.connected());
  const UniqueFd pidfd = with_pidfd ? OwnPidfd() : UniqueFd();
  engine.Send(FrameOfPayload(payload),
              with_pidfd ? std::vector<int>{pidfd.get()} : std::vector<int>{});
}

TEST(SessionServer, EveryTruncationLeavesTheOthersAlone) {
  ServerInThread server;
  RawEngine good(server.path());
  ExpectAttached(&good, "good");
  const std::string payload = ValidPayload();
  for (size_t bytes = 0; bytes < payload.size(); ++bytes) {
    SendAlone(&server, payload.substr(0, bytes), bytes % 2 == 0);
  }
  ASSERT_TRUE(server.WaitFor(
      [&](const CoreStatus&) { return server.Logged("session.closed") == payload.size(); }));
  EXPECT_TRUE(good.IsServed());
  EXPECT_EQ(server.SelfCheck(), "");
}

TEST(SessionServer, TenThousandBitFlipsLeaveTheOthersAlone) {
  ServerInThread server;
  RawEngine good(server.path());
  ExpectAttached(&good, "good");
  const std::string payload = ValidPayload();
  std::mt19937_64 random(11);
  constexpr int kFlips = 10'000;
  for (int i = 0; i < kFlips; ++i) {
    std::string flipped = payload;
    const size_t bit = random() % (payload.size() * 8);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    SendAlone(&server, flipped, i % 4 == 0);
    if (i % 100 == 0) {
      ASSERT_TRUE(good.IsServed()) << "after flip " << i;
    }
  }
  ASSERT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == kFlips; }));
  EXPECT_TRUE(good.IsServed());
  EXPECT_EQ(server.SelfCheck(), "");
}

// ---- FAULTS D3, D4

TEST(SessionServer, AnIdleSessionStays) {
  ServerInThread server;
  RawEngine idle(server.path()), busy(server.path());
  ExpectAttached(&idle, "idle");
  ExpectAttached(&busy, "busy");
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(busy.IsServed());
  EXPECT_TRUE(idle.IsServed());
}

TEST(SessionServer, AClientThatDoesNotReadIsNoLongerReadAndNobodyElseWaits) {
  SessionServer::Options options;
  options.queue_bytes_max = 64 << 10;
  ServerInThread server(1, options);
  RawEngine stopped(server.path()), good(server.path());
  ExpectAttached(&stopped, "stopped");
  ExpectAttached(&good, "good");
  // Answers that nobody reads: the socket fills, then the queue, then nothing more is taken.
  v1::ClientFrame frame;
  for (uint32_t i = 0; i < limits::kMessagesPerFrame; ++i) {
    *frame.add_messages() = ProbeMessage(i + 1, 0, 1);
  }
  const std::string bytes = FrameOf(frame);
  int sent = 0;
  constexpr int kFramesMax = 1000;
  while (sent < kFramesMax && stopped.Send(bytes, {}, 50)) ++sent;
  ASSERT_LT(sent, kFramesMax) << "the node took everything";
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(good.IsServed());

  // It continues where it stopped: every whole frame is answered.
  int answered = 0;
  while (answered < sent * static_cast<int>(limits::kMessagesPerFrame)) {
    const auto answers = stopped.Receive();
    ASSERT_TRUE(answers.has_value()) << "after " << answered;
    answered += answers->messages_size();
  }
}

TEST(SessionServer, AClientThatDoesNotReadAndDiesIsClosed) {
  SessionServer::Options options;
  options.queue_bytes_max = 1 << 10;
  ServerInThread server(1, options);
  {
    RawEngine stopped(server.path());
    ExpectAttached(&stopped, "stopped");
    const std::string bytes = FrameOf(ProbeMessage(1, 0, 1000));
    for (int i = 0; i < 100'000 && stopped.Send(bytes, {}, 20); ++i) {
    }
  }
  EXPECT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == 1; }));
}

TEST(SessionServer, SessionsBeyondTheLimitAreToldSo) {
  SessionServer::Options options;
  options.sessions_max = 2;
  ServerInThread server(1, options);
  RawEngine first(server.path());
  ExpectAttached(&first, "first");
  auto second = std::make_unique<RawEngine>(server.path());
  ExpectAttached(second.get(), "second");
  RawEngine third(server.path());
  const auto frame = third.Receive();
  ASSERT_TRUE(frame && frame->messages_size() == 1);
  EXPECT_EQ(frame->messages(0).code(), v1::LIMIT);
  EXPECT_TRUE(third.WaitHangUp());
  second.reset();
  ASSERT_TRUE(
      server.WaitFor([&](const CoreStatus&) { return server.Logged("session.closed") == 1; }));
  RawEngine fourth(server.path());
  ExpectAttached(&fourth, "fourth");
}

// The process has no descriptor left: those who are connected are served, and whoever waits is
// served once there is room, without a loop that spins for it.
TEST(SessionServer, WithoutDescriptorsItWaits) {
  ServerInThread server;
  RawEngine good(server.path());
  ExpectAttached(&good, "good");
  UniqueFd unconnected = RawEngine::NewSocket();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd probe(::dup(0));  // the lowest that is free
  const rlimit none{static_cast<rlim_t>(probe.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  RawEngine waiting(server.path(), std::move(unconnected));
  EXPECT_TRUE(waiting.connected());
  EXPECT_TRUE(server.WaitFor(
      [&](const CoreStatus&) { return server.Logged("session.accept_paused") > 0; }));
  EXPECT_TRUE(good.IsServed());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ExpectAttached(&waiting, "waiting");
  EXPECT_LT(server.Logged("session.accept_paused"), 100u);
}

// ---- Extents

// Stores blocks [0, blocks) of the prompt that starts at token `first`; the Begin's answer frames.
std::vector<v1::NodeFrame> Store(RawEngine* engine, uint32_t first, uint32_t blocks) {
  v1::ClientMessage reserve;
  reserve.set_serial(1);
  reserve.mutable_reserve()->mutable_prompt()->set_tokens(TokenBytes(first, blocks * 4));
  reserve.mutable_reserve()->set_to(blocks);
  const auto reserved = engine->Call(reserve);
  EXPECT_TRUE(reserved && reserved->has_reserve() && reserved->reserve().claim() != 0)
      << (reserved ? reserved->message() : "no answer");
  if (!reserved) return {};
  v1::ClientMessage begin;
  begin.set_serial(2);
  begin.mutable_begin()->add_claims(reserved->reserve().claim());
  EXPECT_TRUE(engine->Send(FrameOf(begin)));
  std::vector<v1::NodeFrame> frames;
  do {
    const auto frame = engine->Receive();
    if (!frame) break;
    frames.push_back(*frame);
  } while (frames.back().messages_size() == 0);
  return frames;
}

TEST(SessionServer, AnExtentComesOnceAndWithItsFirstPage) {
  ServerInThread server(2);
  RawEngine engine(server.path());
  ExpectAttached(&engine, "a");
  EXPECT_TRUE(engine.fds().empty());
  std::vector<v1::NodeFrame> frames = Store(&engine, 0, 4);
  ASSERT_EQ(frames.size(), 1u);
  ASSERT_EQ(frames[0].extents_size(), 1);
  ASSERT_EQ(engine.fds().size(), 1u);
  ASSERT_EQ(frames[0].messages_size(), 1);
  const v1::BeginItem& item = frames[0].messages(0).begin().items(0);
  ASSERT_EQ(item.code(), v1::OK) << item.message();
  uint32_t page = 0;
  std::memcpy(&page, item.pages().data(), sizeof(page));
  EXPECT_EQ(page >> kPageIndexBits, frames[0].extents(0));

  frames = Store(&engine, 1000, 4);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].extents_size(), 0) << "it has come before";
  EXPECT_EQ(engine.fds().size(), 1u);

  RawEngine other(server.path());
  ExpectAttached(&other, "b");
  frames = Store(&other, 2000, 4);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].extents_size(), 1) << "each session gets its own";
}

}  // namespace
}  // namespace pando::local
