// What a PeerServer and a PeerClient do when the other side is wrong, silent or gone.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "node/control/peer_codec.h"
#include "node/control/peer_transport.h"
#include "node/core/cluster/limits.h"
#include "pando/v1/peer.grpc.pb.h"
#include "tests/node/control/peer_examples.h"
#include "tests/node/control/peer_pair.h"

namespace pando::control {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A caller of one's own making.
class Stranger {
 public:
  explicit Stranger(const std::string& address) {
    grpc::ChannelArguments options;
    options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ =
        grpc::CreateCustomChannel("ipv4:" + address, grpc::InsecureChannelCredentials(), options);
  }
  // Calls `path` with any bytes.
  grpc::Status Call(const std::string& path, const std::string& bytes, std::string* answer,
                    bool deadline = true) {
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    if (deadline) context.set_deadline(std::chrono::system_clock::now() + kWait);
    grpc::Status status;
    grpc::ByteBuffer in;
    const auto reader = stub.PrepareUnaryCall(&context, path, BufferOf(bytes), &queue);
    reader->StartCall();
    reader->Finish(&in, &status, this);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    if (answer != nullptr && status.ok()) *answer = Flat(in).bytes();
    return status;
  }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

const char* PathOf(PeerCall call) {
  return kPeerCallPaths[static_cast<size_t>(call)];
}

using PeerFaults = PeerPair;

// FAULTS G2, E4
TEST_F(PeerFaults, MalformedRequestsAreAnsweredAndCounted) {
  Stranger stranger(server_->address());
  std::string bytes;
  ASSERT_TRUE(stranger.Call(PathOf(PeerCall::kHello), "\xff\xff", &bytes).ok());
  const auto hello = DecodeAnswer(PeerCall::kHello, bytes);
  ASSERT_TRUE(std::holds_alternative<PeerAnswerBody>(hello));
  const auto& answer = std::get<HelloAnswer>(std::get<PeerAnswerBody>(hello));
  EXPECT_EQ(answer.code, PeerCode::kInvalid);
  EXPECT_THAT(answer.message, HasSubstr("no HelloRequest"));

  GrantRequest grant = ExampleGrant();
  grant.to = grant.from;
  ASSERT_TRUE(stranger.Call(PathOf(PeerCall::kGrant), EncodeRequest(grant), &bytes).ok());
  const auto granted = DecodeAnswer(PeerCall::kGrant, bytes);
  ASSERT_TRUE(std::holds_alternative<PeerAnswerBody>(granted));
  EXPECT_EQ(std::get<GrantAnswer>(std::get<PeerAnswerBody>(granted)).code, PeerCode::kInvalid);

  const grpc::Status done = stranger.Call(PathOf(PeerCall::kDone), "", nullptr);
  EXPECT_EQ(done.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(done.error_message(), HasSubstr("requester_boot_id"));
  EXPECT_EQ(stranger.Call(kFeedPath, "", nullptr).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server_->counters().refused_malformed, 4u);
  EXPECT_EQ(stranger.Call("/pando.v1.Peer/Obey", "", nullptr).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);

  // Another peer notices nothing.
  EXPECT_EQ(owner_.Count<PeerAsks>() + owner_.Count<FeedAsked>(), 0u);
  Ask(1, DoneRequest{BootId(1), {}, {}});
  const auto asked = owner_.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  server_->Take(AnswerPeer{asked->call, DoneAnswer{}});
  EXPECT_TRUE(Answered(1).answer.has_value());
}

// FAULTS G2
TEST_F(PeerFaults, OversizedMessagesAreRefused) {
  Stranger stranger(server_->address());
  const std::string much(limits::kPeerMessageBytes + 1, 'x');
  const grpc::Status status = stranger.Call(PathOf(PeerCall::kGrant), much, nullptr);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(TextOf(status), AllOf(HasSubstr("16777216")));
  EXPECT_EQ(owner_.Count<PeerAsks>(), 0u);

  GrantRequest grant = ExampleGrant();
  grant.space_identity = much;
  Ask(1, grant);
  const PeerAnswered answered = Answered(1);
  EXPECT_FALSE(answered.answer.has_value());
  EXPECT_THAT(answered.why, HasSubstr("RESOURCE_EXHAUSTED"));
}

TEST_F(PeerFaults, ACallNeedsADeadline) {
  Stranger stranger(server_->address());
  const grpc::Status status =
      stranger.Call(PathOf(PeerCall::kGoodbye), EncodeRequest(GoodbyeRequest{BootId(1), ""}),
                    nullptr, /*deadline=*/false);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("deadline"));
}

// FAULTS G4: an owner that lies.
TEST_F(PeerFaults, MalformedAnswersAreNone) {
  Ask(1, ExampleGrant());
  auto asked = owner_.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  GrantAnswer answer = ExampleGranted();
  answer.generations.pop_back();
  server_->Take(AnswerPeer{asked->call, answer});
  PeerAnswered answered = Answered(1);
  EXPECT_FALSE(answered.answer.has_value());
  EXPECT_THAT(answered.why, AllOf(HasSubstr("malformed"), HasSubstr("generations")));

  const uint64_t stream = OpenAndAsk(1);
  FeedPiece piece = ExamplePiece();
  piece.boot = BootId(0);
  Send(stream, piece, ExampleTotals());
  const auto arrived = requester_.Next<FeedArrived>();
  ASSERT_TRUE(arrived.has_value());
  EXPECT_FALSE(arrived->piece.has_value());
  EXPECT_FALSE(arrived->totals.has_value());
  client_->FeedStepped(1);
  ASSERT_TRUE(owner_.Next<FeedReady>().has_value());
  Send(stream, ExamplePiece());
  const auto next = requester_.Next<FeedArrived>();
  ASSERT_TRUE(next.has_value());
  EXPECT_TRUE(next->piece.has_value()) << "the stream itself goes on";
}

// FAULTS D4
TEST_F(PeerFaults, AnOwnerThatDoesNotAnswerCostsADeadline) {
  Ask(1, DoneRequest{BootId(1), {}, {}}, kSecond);
  const auto asked = owner_.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  const PeerAnswered answered = Answered(1);
  EXPECT_FALSE(answered.answer.has_value());
  EXPECT_THAT(answered.why, HasSubstr("DEADLINE_EXCEEDED"));
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().gone == 1; })) << "its call is freed";
  server_->Take(AnswerPeer{asked->call, DoneAnswer{}});  // too late, harmless
  Ask(2, DoneRequest{BootId(1), {}, {}}, -kSecond);
  EXPECT_THAT(Answered(2).why, HasSubstr("DEADLINE_EXCEEDED"));
}

// FAULTS D4
TEST_F(PeerFaults, PeersThatAreNotThere) {
  const std::string closed = server_->address();
  server_.reset();
  Ask(1, DoneRequest{BootId(1), {}, {}});
  EXPECT_THAT(Answered(1).why, HasSubstr("UNAVAILABLE"));
  Open(1);
  const auto ended = requester_.Next<FeedEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_THAT(ended->why, HasSubstr("UNAVAILABLE"));

  client_->Take(AskPeer{PeerId(99), 2, Monotonic() + kSecond, GoodbyeRequest{BootId(1), ""}});
  EXPECT_THAT(Answered(2).why, HasSubstr("no peer"));
  client_->SetPeers({{PeerId(8), "localhost:1"}});
  client_->Take(AskPeer{PeerId(8), 3, Monotonic() + kSecond, GoodbyeRequest{BootId(1), ""}});
  EXPECT_THAT(Answered(3).why, HasSubstr("numeric"));

  // One that comes back is found again.
  Serve({.listen = closed});
  client_->SetPeers({{PeerId(9), closed}});
  client_->Take(AskPeer{PeerId(9), 4, Monotonic() + 20 * kSecond, GoodbyeRequest{BootId(1), ""}});
  const auto asked = owner_.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  server_->Take(AnswerPeer{asked->call, GoodbyeAnswer{}});
  EXPECT_TRUE(Answered(4).answer.has_value());
}

// FAULTS D4: it takes the connection and says nothing.
TEST_F(PeerFaults, APeerThatIsSilent) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent, 8), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  client_->SetPeers({{kPeer, server_->address()},
                     {PeerId(8), "127.0.0.1:" + std::to_string(ntohs(address.sin_port))}});
  client_->Take(AskPeer{PeerId(8), 1, Monotonic() + kSecond / 2, GoodbyeRequest{BootId(1), ""}});
  Ask(2, GoodbyeRequest{BootId(1), ""});
  const auto asked = owner_.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  server_->Take(AnswerPeer{asked->call, GoodbyeAnswer{}});
  EXPECT_TRUE(Answered(2).answer.has_value()) << "the others' calls do not wait for it";
  EXPECT_THAT(Answered(1).why, HasSubstr("DEADLINE_EXCEEDED"));
  ::close(silent);
}

}  // namespace
}  // namespace pando::control
