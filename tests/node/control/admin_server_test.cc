#include "node/control/admin_server.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "node/control/process_facts.h"
#include "node/control/status_message.h"
#include "pando/v1/admin.grpc.pb.h"

namespace pando::control {
namespace {

constexpr std::chrono::seconds kWait{10};

// An admin server whose owner thread is the gRPC thread itself, or is too busy.
class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest() {
    AdminServer::Source source;
    source.run_on_owner = [this](const std::function<void()>& work, std::chrono::milliseconds) {
      if (busy_) return false;
      work();
      return true;
    };
    source.core = &core_;
    source.ready = [this] { return ready_.load(); };
    source.facts = {BootId(77), "n1", "1.2.3", 0, Bytes(128ull << 20)};
    auto server = AdminServer::Start(std::move(source));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server_->Serve(ends[0]);
    stub_ = v1::Admin::NewStub(grpc::CreateInsecureChannelFromFd("admin", ends[1]));
  }
  ~AdminServerTest() override {
    stub_.reset();
    server_.reset();
  }

  template <class Request, class Response>
  grpc::Status Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kWait);
    return (stub_.get()->*method)(&context, request, response);
  }

  NodeCore core_{NodeCore::Options{{}, Bytes(128ull << 20)}};
  std::atomic<bool> busy_ = false, ready_ = false;
  std::unique_ptr<AdminServer> server_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

void AttachReplica(NodeCore* core) {
  std::vector<Output> outputs;
  core->Step(1, ExtentReady{ExtentId(0)}, &outputs);
  core->Step(1, SessionOpened{SessionId(1)}, &outputs);
  AttachRequest attach;
  attach.checksum_formula = 1;
  attach.replica_key = "r";
  attach.block_tokens = 4;
  attach.page_bytes = Bytes(1 << 20);
  attach.fields = {{"model", "m"}};
  attach.has_pidfd = true;
  core->Step(1, SessionRequest{SessionId(1), 1, 0, attach}, &outputs);
  ReserveRequest reserve;
  reserve.prompt.tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  reserve.to = 2;
  core->Step(1, SessionRequest{SessionId(1), 2, 0, reserve}, &outputs);
}

TEST_F(AdminServerTest, StatusIsTheCoresAndTheProcesses) {
  AttachReplica(&core_);
  ready_ = true;
  v1::Status status;
  const grpc::Status result = Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest(), &status);
  ASSERT_TRUE(result.ok()) << result.error_message();
  EXPECT_EQ(status.boot_id(), 77u);
  EXPECT_EQ(status.name(), "n1");
  EXPECT_EQ(status.version(), "1.2.3");
  EXPECT_TRUE(status.ready());
  EXPECT_EQ(status.slab_bytes(), 128ull << 20);
  EXPECT_EQ(status.sessions(), 1u);
  EXPECT_EQ(status.replicas(), 1u);
  EXPECT_EQ(status.extents(), 1u);
  EXPECT_EQ(status.reservations(), 1u);
  EXPECT_EQ(status.pages().reserved(), 2u);
  EXPECT_EQ(status.pages().free(), 62u);
  EXPECT_GT(status.fds(), 3u);
  EXPECT_GE(status.threads(), 2u);
  ASSERT_EQ(status.spaces_size(), 1);
  EXPECT_EQ(status.spaces(0).block_tokens(), 4u);
  EXPECT_EQ(status.spaces(0).page_bytes(), 1u << 20);
  ASSERT_EQ(status.spaces(0).fields_size(), 1);
  EXPECT_EQ(status.spaces(0).fields(0).name(), "model");
  uint64_t reserves = 0;
  for (const v1::Counter& counter : status.counters()) {
    if (counter.name() == "reserves") reserves = counter.value();
  }
  EXPECT_EQ(reserves, 1u);
}

TEST_F(AdminServerTest, TheClusterIsThereOnceItIsStarted) {
  v1::Status status;
  ASSERT_TRUE(Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest(), &status).ok());
  EXPECT_FALSE(status.has_cluster());
  std::vector<Output> outputs;
  core_.Step(1, ClusterStarted{"n1", BootId(77), "data:1", 5}, &outputs);
  core_.Step(1, PeersChanged{{{PeerId(1), "b:7400"}, {PeerId(2), "c:7400"}}}, &outputs);
  ASSERT_TRUE(Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest(), &status).ok());
  ASSERT_EQ(status.cluster().peers_size(), 2);
  EXPECT_EQ(status.cluster().peers(1).address(), "c:7400");
  EXPECT_EQ(status.cluster().peers(1).state(), v1::ClusterPeer::CONNECTING);
  EXPECT_FALSE(status.cluster().peers(1).has_heard_ago_ms());
  EXPECT_FALSE(status.cluster().peers(1).has_totals());
  EXPECT_TRUE(status.cluster().has_totals());
}

// Each number of a peer comes out as itself.
TEST(StatusMessage, APeersNumbersAreKeptApart) {
  CoreStatus core;
  core.cluster.started = true;
  PeerStatus& peer = core.cluster.peers.emplace_back();
  peer.state = PeerState::kIncompatible;
  peer.boot = BootId(3);
  uint64_t next = 100;
  for (uint64_t* number :
       {&peer.blocks, &peer.prefilling, &peer.grants_asked, &peer.grants_missed,
        &peer.grants_refused, &peer.pulls, &peer.pages_pulled, &peer.bytes_pulled, &peer.pages_bad,
        &peer.pages_failed, &peer.pull_micros}) {
    *number = next++;
  }
  peer.heard_ago = 5'000'000;
  peer.closed_for = 6'000'000;
  peer.totals = NodeTotals{};
  peer.totals->account.hit_peer = 200;
  peer.totals->uptime_ms = 201;
  peer.totals_ago = 7'000'000;
  v1::Status status;
  WriteStatus(core, &status);
  const v1::ClusterPeer& out = status.cluster().peers(0);
  EXPECT_EQ(out.state(), v1::ClusterPeer::INCOMPATIBLE);
  EXPECT_EQ(out.boot_id(), 3u);
  next = 100;
  for (const uint64_t number :
       {out.blocks(), out.prefilling(), out.grants_asked(), out.grants_missed(),
        out.grants_refused(), out.pulls(), out.pages_pulled(), out.bytes_pulled(), out.pages_bad(),
        out.pages_failed(), out.pull_micros()}) {
    EXPECT_EQ(number, next++);
  }
  EXPECT_EQ(out.heard_ago_ms(), 5u);
  EXPECT_EQ(out.closed_for_ms(), 6u);
  EXPECT_EQ(out.totals().account().hit_peer(), 200u);
  EXPECT_EQ(out.totals().uptime_ms(), 201u);
  EXPECT_EQ(out.totals_ago_ms(), 7u);
}

TEST_F(AdminServerTest, RunsOfASpace) {
  v1::ListRunsRequest request;
  v1::ListRunsResponse runs;
  EXPECT_EQ(Call(&v1::Admin::Stub::ListRuns, request, &runs).error_code(),
            grpc::StatusCode::NOT_FOUND);
  AttachReplica(&core_);
  const grpc::Status result = Call(&v1::Admin::Stub::ListRuns, request, &runs);
  ASSERT_TRUE(result.ok()) << result.error_message();
  ASSERT_EQ(runs.runs_size(), 1);
  EXPECT_EQ(runs.runs(0).blocks(), 2u);
  EXPECT_EQ(runs.runs(0).complete_blocks(), 0u);
  EXPECT_FALSE(runs.truncated());
  request.set_limit(100'001);
  EXPECT_EQ(Call(&v1::Admin::Stub::ListRuns, request, &runs).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminServerTest, SelfCheckFindsNothing) {
  AttachReplica(&core_);
  v1::SelfCheckResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::SelfCheck, v1::SelfCheckRequest(), &response).ok());
  EXPECT_EQ(response.broken(), "");
}

TEST(ProcessFacts, CountsWhenThereIsNoDescriptorLeftToCountWith) {
  const ProcessFacts before = ReadProcessFacts();
  ASSERT_TRUE(before.fds.has_value());
  EXPECT_GE(before.threads, 1u);
  const int lowest = ::dup(0);
  EXPECT_EQ(ReadProcessFacts().fds, *before.fds + 1);
  ::close(lowest);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{static_cast<rlim_t>(lowest), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const ProcessFacts without = ReadProcessFacts();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(without.fds, static_cast<uint64_t>(lowest));
  EXPECT_EQ(without.threads, before.threads);
}

// FAULTS D1
TEST_F(AdminServerTest, ABusyNodeIsUnavailable) {
  busy_ = true;
  v1::Status status;
  EXPECT_EQ(Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest(), &status).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace pando::control
