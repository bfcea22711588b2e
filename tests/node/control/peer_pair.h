// A PeerServer and a PeerClient that reaches it over loopback, each with a stand-in for its owner.
// One thread, the test's.
#ifndef PANDO_TESTS_NODE_CONTROL_PEER_PAIR_H_
#define PANDO_TESTS_NODE_CONTROL_PEER_PAIR_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "node/control/peer_client.h"
#include "node/control/peer_server.h"
#include "tests/node/control/inputs.h"

namespace pando::control {

class PeerPair : public testing::Test {
 protected:
  static constexpr PeerId kPeer{7};
  static constexpr Nanos kSecond = 1'000'000'000;

  void Serve(PeerServer::Options options = {}) {
    options.deliver = owner_.sink();
    auto server = PeerServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Connect() {
    client_ = std::make_unique<PeerClient>(requester_.sink());
    client_->SetPeers({{kPeer, server_->address()}});
  }
  void SetUp() override {
    Serve();
    Connect();
  }

  void Ask(uint64_t call, PeerRequestBody body, Nanos within = 20 * kSecond) {
    client_->Take(AskPeer{kPeer, call, Monotonic() + within, std::move(body)});
  }
  void Open(uint64_t stream) {
    client_->Take(OpenFeed{kPeer, stream, FeedRequest{BootId(1), BootId(2), 3}});
  }
  // Opens a feed and waits for the owner to hear of it: the server's name of it.
  uint64_t OpenAndAsk(uint64_t stream) {
    Open(stream);
    const auto asked = owner_.Next<FeedAsked>();
    EXPECT_TRUE(asked.has_value());
    return asked ? asked->stream : 0;
  }
  void Send(uint64_t stream, FeedPiece piece, std::optional<NodeTotals> totals = std::nullopt) {
    server_->Take(SendFeed{stream, std::make_shared<FeedPiece>(std::move(piece)), totals});
  }
  // Waits for the answer to `call`.
  PeerAnswered Answered(uint64_t call) {
    const auto answered = requester_.Next<PeerAnswered>();
    EXPECT_TRUE(answered.has_value()) << "no answer to " << call;
    if (!answered) return {};
    EXPECT_EQ(answered->call, call);
    return *answered;
  }

  bool WaitUntil(const std::function<bool()>& reached) {
    const Nanos deadline = Monotonic() + 20 * kSecond;
    while (!reached()) {
      if (Monotonic() > deadline) return false;
      ::usleep(1000);
    }
    return true;
  }

  Inputs owner_, requester_;
  std::unique_ptr<PeerServer> server_;
  std::unique_ptr<PeerClient> client_;
};

}  // namespace pando::control

#endif  // PANDO_TESTS_NODE_CONTROL_PEER_PAIR_H_
