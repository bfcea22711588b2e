// pando-node as a member of a cluster, seen by a peer that this test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/control/peer_client.h"
#include "node/control/peer_server.h"
#include "node/control/peer_transport.h"
#include "node/core/hello.h"
#include "tests/e2e/process/child.h"
#include "tests/node/control/inputs.h"
#include "tests/node/runtime/ready_line.h"
#include "tests/paths.h"
#include "tests/transfer/raw_bytes.h"

namespace pando::runtime {
namespace {

using control::Inputs;
using control::Monotonic;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kWait = 30 * e2e::kSecond;

class ClusterNodeTest : public testing::Test {
 protected:
  ClusterNodeTest() {
    std::string folder = "/tmp/pando-test-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~ClusterNodeTest() override {
    if (HasFailure() && node_ != nullptr) {
      node_->Signal(SIGKILL);
      while (const auto line = node_->ReadLine(e2e::Now() + kWait)) std::cerr << *line << '\n';
    }
    node_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Start(const std::vector<std::string>& more, const std::string& before = "") {
    std::vector<std::string> command = {"/bin/sh",  // its log among what it says
                                        "-c",
                                        before + "exec \"$0\" \"$@\" 2>&1",
                                        PANDO_BIN_DIR "/pando-node",
                                        "--name",
                                        "real",
                                        "--socket",
                                        folder_ / "node.sock",
                                        "--host-slab",
                                        "64MiB",
                                        "--peer-listen",
                                        "127.0.0.1:0"};
    command.insert(command.end(), more.begin(), more.end());
    node_ = std::make_unique<e2e::Child>(command);
    const auto ready = node_->ReadUntil("pando-node ready", e2e::Now() + kWait);
    ASSERT_TRUE(ready.has_value());
    ready_ = *ready;
  }
  std::string Ready(const std::string& key) const { return ReadyField(ready_, key); }
  bool Logs(const std::string& event) {
    while (const auto line = node_->ReadLine(e2e::Now() + kWait)) {
      if (line->find(event) != std::string::npos) return true;
    }
    return false;
  }
  void ExpectGoodEnd() {
    node_->Signal(SIGTERM);
    const auto status = node_->WaitExit(e2e::Now() + kWait);
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
  }
  // This test as a node.
  static PeerHello Mine() {
    PeerHello hello = FormulasOf("");
    hello.node_name = "played";
    hello.boot = BootId(77);
    return hello;
  }
  // Says hello to the node.
  HelloAnswer Hello() {
    Inputs inputs;
    control::PeerClient client(inputs.sink());
    client.SetPeers({{PeerId(1), Ready("peer")}});
    client.Take(AskPeer{PeerId(1), 1, Monotonic() + kWait, HelloRequest{Mine()}});
    const auto answered = inputs.Next<PeerAnswered>();
    EXPECT_TRUE(answered && answered->answer) << (answered ? answered->why : "no answer");
    if (!answered || !answered->answer) return {};
    return std::get<HelloAnswer>(*answered->answer);
  }

  std::filesystem::path folder_;
  std::string ready_;
  std::unique_ptr<e2e::Child> node_;
};

TEST_F(ClusterNodeTest, SaysWhereItListensAndAnswersThere) {
  Start({});
  EXPECT_THAT(Ready("peer"), HasSubstr("127.0.0.1:"));
  EXPECT_NE(Ready("peer"), "127.0.0.1:0");
  EXPECT_NE(Ready("data"), "127.0.0.1:0");
  const HelloAnswer answer = Hello();
  EXPECT_EQ(answer.code, PeerCode::kOk) << answer.message;
  EXPECT_EQ(answer.hello.node_name, "real");
  EXPECT_EQ(answer.hello.data_address, Ready("data"));
  ExpectGoodEnd();
}

// FAULTS G3: UCX aborts its process on what it cannot parse. That is not the node's.
TEST_F(ClusterNodeTest, WrongBytesOnTheDataPortLeaveTheNodeAndItsPort) {
  Start({});
  const BootId boot = Hello().hello.boot;
  for (int again = 0; again < 2; ++again) {
    SendRaw(Ready("data"), std::string(64, '\xff'));
    ASSERT_TRUE(Logs("transfer.restarted"));
  }
  const HelloAnswer answer = Hello();
  EXPECT_EQ(answer.hello.boot, boot);
  EXPECT_EQ(answer.hello.data_address, Ready("data"));
  ExpectGoodEnd();
}

// FAULTS C3, G1: what moves its pages goes with it, also while it is stopped; else the slab's
// memory and the port would stay taken.
TEST_F(ClusterNodeTest, AStoppedTransferProcessGoesWithItsNode) {
  Start({});
  std::vector<pid_t> children;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(node_->pid()) + "/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  ASSERT_EQ(children.size(), 1u);
  const UniqueFd transfer(static_cast<int>(::syscall(SYS_pidfd_open, children[0], 0)));
  ASSERT_TRUE(transfer.valid());
  ASSERT_EQ(::kill(children[0], SIGSTOP), 0);
  node_->Signal(SIGKILL);
  ASSERT_TRUE(node_->WaitExit(e2e::Now() + kWait).has_value());
  pollfd ended{transfer.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 20'000), 1);
}

// FAULTS D4, G3: descriptors that run out once, and come back.
TEST_F(ClusterNodeTest, SilentConnectionsToThePeerPortThatTakeAllDescriptors) {
  Start({}, "ulimit -n 300; ");
  {
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 400; ++i) silent.push_back(ConnectRaw(Ready("peer")));
  }
  EXPECT_EQ(Hello().code, PeerCode::kOk);
  ExpectGoodEnd();
}

TEST_F(ClusterNodeTest, WithoutSharingItAnswersAndHasNoPages) {
  Start({"--no-sharing"});
  EXPECT_EQ(Ready("data"), "");
  const HelloAnswer answer = Hello();
  EXPECT_EQ(answer.code, PeerCode::kOk) << answer.message;
  EXPECT_EQ(answer.hello.data_address, "");
  ExpectGoodEnd();
}

TEST_F(ClusterNodeTest, FollowsThePeersItIsToldAndSaysGoodbye) {
  Inputs owner;
  auto server = control::PeerServer::Start({.deliver = owner.sink()});
  ASSERT_TRUE(server.ok()) << server.status();
  Start({"--peers", (*server)->address()});
  const auto asked = owner.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  ASSERT_TRUE(std::holds_alternative<HelloRequest>(asked->body));
  EXPECT_EQ(std::get<HelloRequest>(asked->body).hello.node_name, "real");
  EXPECT_EQ(std::get<HelloRequest>(asked->body).hello.data_address, Ready("data"));
  (*server)->Take(AnswerPeer{asked->call, HelloAnswer{PeerCode::kOk, "", Mine()}});
  ASSERT_TRUE(owner.Next<FeedAsked>().has_value());
  ExpectGoodEnd();
  ASSERT_TRUE(owner.Next<FeedDropped>().has_value());
  const auto goodbye = owner.Next<PeerAsks>();
  ASSERT_TRUE(goodbye.has_value());
  EXPECT_TRUE(std::holds_alternative<GoodbyeRequest>(goodbye->body));
}

// FAULTS C3: a host that has stopped answers no keepalive, so that who listens to it hears of it.
TEST_F(ClusterNodeTest, TheFeedOfAStoppedNodeEnds) {
  Start({});
  const HelloAnswer answer = Hello();
  Inputs inputs;
  control::PeerClient client(inputs.sink());
  client.SetPeers({{PeerId(1), Ready("peer")}});
  client.Take(OpenFeed{PeerId(1), 5, FeedRequest{Mine().boot, BootId(), 0}});
  ASSERT_TRUE(inputs.Next<FeedArrived>().has_value());
  client.FeedStepped(5);
  node_->Signal(SIGSTOP);
  constexpr std::chrono::milliseconds kSilence =
      2 * std::chrono::milliseconds(control::kKeepaliveMillis + control::kKeepaliveTimeoutMillis);
  EXPECT_TRUE(inputs.Next<FeedEnded>(kSilence).has_value());
  node_->Signal(SIGCONT);
  EXPECT_EQ(Hello().hello.boot, answer.hello.boot);
  ExpectGoodEnd();
}

// FAULTS G5
TEST_F(ClusterNodeTest, APeerPortInUseIsRefusedAtTheStart) {
  Start({});
  e2e::Child second({PANDO_BIN_DIR "/pando-node", "--socket", folder_ / "second.sock", "--admin",
                     folder_ / "second-admin.sock", "--host-slab", "64MiB", "--peer-listen",
                     Ready("peer")});
  const auto status = second.WaitExit(e2e::Now() + kWait);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 2) << *status;
}

}  // namespace
}  // namespace pando::runtime
