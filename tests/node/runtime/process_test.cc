// pando-node as a process: how it starts, what it refuses, how it ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "node/local/listener.h"
#include "tests/e2e/process/child.h"
#include "tests/node/local/raw_engine.h"
#include "tests/node/runtime/ready_line.h"
#include "tests/paths.h"

namespace pando::runtime {
namespace {

using e2e::Child;
using e2e::kSecond;
using e2e::Now;
using local::RawEngine;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kWait = 30 * kSecond;
const char* const kNode = PANDO_BIN_DIR "/pando-node";

class NodeTest : public testing::Test {
 protected:
  NodeTest() {
    std::string folder = "/tmp/pando-test-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    socket_ = folder_ / "node.sock";
  }
  ~NodeTest() override {
    node_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::vector<std::string> Command(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {kNode,   "--socket",         socket_,      "--host-slab",
                                        "64MiB", "--metrics-listen", "127.0.0.1:0"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  // Starts the node, waits until it is ready.
  void Start(const std::vector<std::string>& more = {}) {
    node_ = std::make_unique<Child>(Command(more));
    const auto ready = node_->ReadUntil("pando-node ready", Now() + kWait);
    ASSERT_TRUE(ready.has_value());
    ready_ = *ready;
  }
  // A field of the ready line.
  std::string Ready(const std::string& key) const { return ReadyField(ready_, key); }
  std::optional<std::string> Get(const std::string& path, int* status = nullptr) const {
    const std::string address = Ready("metrics");
    httplib::Client client("127.0.0.1", std::stoi(address.substr(address.rfind(':') + 1)));
    const auto result = client.Get(path.c_str());
    if (!result) return std::nullopt;
    if (status != nullptr) *status = result->status;
    return result->body;
  }
  // The value of one line of /metrics; -1 if there is none.
  double Metric(const std::string& name) const {
    std::istringstream lines(Get("/metrics").value_or(""));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    }
    return -1;
  }
  bool WaitMetric(const std::string& name, double value) const {
    const int64_t deadline = Now() + kWait;
    while (Metric(name) != value) {
      if (Now() > deadline) return false;
      ::usleep(2000);
    }
    return true;
  }
  // Exit status 0 before the deadline.
  void ExpectGoodEnd() {
    const auto status = node_->WaitExit(Now() + kWait);
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(WIFEXITED(*status)) << *status;
    EXPECT_EQ(WEXITSTATUS(*status), 0);
    EXPECT_FALSE(std::filesystem::exists(socket_));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "admin.sock"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }

  std::filesystem::path folder_;
  std::string socket_, ready_;
  std::unique_ptr<Child> node_;
};

struct Ended {
  int code = -1;
  std::string text;
};

// Runs a node that is expected to end by itself; what it said on stdout and stderr.
Ended RunToEnd(const std::vector<std::string>& command) {
  std::string shell = "timeout 30";
  for (const std::string& word : command) shell += " '" + word + "'";
  FILE* pipe = ::popen((shell + " 2>&1").c_str(), "r");
  Ended ended;
  char buffer[4096];
  while (const size_t got = ::fread(buffer, 1, sizeof(buffer), pipe))
    ended.text.append(buffer, got);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

TEST_F(NodeTest, SaysThatItIsReadyAndEndsAtSigterm) {
  Start({"--name", "n1"});
  EXPECT_EQ(Ready("name"), "n1");
  EXPECT_EQ(Ready("socket"), socket_);
  EXPECT_EQ(Ready("slab"), std::to_string(64 << 20));
  EXPECT_EQ(Ready("boot_id").size(), 16u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "admin.sock"));
  node_->Signal(SIGTERM);
  ExpectGoodEnd();
}

// A limit on files (ulimit -f) holds for the slab too: an error that says so, and nothing is left.
TEST_F(NodeTest, ALimitOnFilesIsAnError) {
  const std::vector<std::string> node = Command({});
  std::vector<std::string> command = {"sh", "-c", "ulimit -f 1000; exec \"$0\" \"$@\""};
  command.insert(command.end(), node.begin(), node.end());
  const Ended ended = RunToEnd(command);
  EXPECT_EQ(ended.code, 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(NodeTest, EndsAtSigtermWhileAClientIsAttached) {
  Start();
  RawEngine engine(socket_);
  ASSERT_TRUE(engine.Attach("a").has_value());
  node_->Signal(SIGTERM);
  EXPECT_TRUE(engine.WaitHangUp());
  ExpectGoodEnd();
}

// Reserves one block; the claim, 0 if it went wrong.
uint64_t ReserveOneBlock(RawEngine* engine) {
  v1::ClientMessage reserve;
  reserve.set_serial(1);
  reserve.mutable_reserve()->mutable_prompt()->set_tokens(local::TokenBytes(0, 4));
  reserve.mutable_reserve()->set_to(1);
  const auto answer = engine->Call(reserve);
  return answer ? answer->reserve().claim() : 0;
}

TEST_F(NodeTest, RunningClaimsMayEndInADrain) {
  Start({"--drain-timeout", "60000"});
  RawEngine engine(socket_);
  ASSERT_TRUE(engine.Attach("a").has_value());
  const uint64_t claim = ReserveOneBlock(&engine);
  ASSERT_NE(claim, 0u);
  node_->Signal(SIGTERM);
  int ready = 200;
  const int64_t deadline = Now() + kWait;
  while (ready == 200 && Now() < deadline) ASSERT_TRUE(Get("/readyz", &ready).has_value());
  EXPECT_EQ(ready, 503) << "it drains";
  v1::ClientMessage acquire;
  acquire.set_serial(2);
  acquire.mutable_acquire()->set_request(1);
  acquire.mutable_acquire()->mutable_prompt()->set_tokens(local::TokenBytes(0, 8));
  const auto refused = engine.Call(acquire);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code(), v1::UNAVAILABLE) << "no new claims";
  v1::ClientMessage abort;
  abort.set_serial(3);
  abort.mutable_abort()->add_claims(claim);
  ASSERT_TRUE(engine.Send(local::FrameOf(abort)));
  EXPECT_TRUE(engine.WaitHangUp());
  ExpectGoodEnd();
}

TEST_F(NodeTest, ADrainEndsAtItsTimeout) {
  Start({"--drain-timeout", "50"});
  RawEngine engine(socket_);
  ASSERT_TRUE(engine.Attach("a").has_value());
  ASSERT_NE(ReserveOneBlock(&engine), 0u);
  node_->Signal(SIGTERM);
  ExpectGoodEnd();
}

TEST_F(NodeTest, LeavesSocketsAloneThatAnotherHasPutInThePlaceOfItsOwn) {
  Start();
  std::filesystem::remove(socket_);
  std::filesystem::remove(folder_ / "admin.sock");
  const auto socket = local::Listener::Bind(socket_);
  const auto admin = local::Listener::Bind(folder_ / "admin.sock");
  ASSERT_TRUE(socket.ok() && admin.ok());
  node_->Signal(SIGTERM);
  ASSERT_TRUE(node_->WaitExit(Now() + kWait).has_value());
  EXPECT_TRUE(RawEngine(socket_).connected());
  EXPECT_TRUE(RawEngine(folder_ / "admin.sock").connected());
}

// FAULTS D2
TEST_F(NodeTest, EveryLifeHasItsOwnBootId) {
  Start();
  const std::string first = Ready("boot_id");
  node_->Signal(SIGKILL);
  ASSERT_TRUE(node_->WaitExit(Now() + kWait).has_value());
  ASSERT_TRUE(std::filesystem::exists(socket_)) << "a killed node leaves its socket";
  Start();
  EXPECT_NE(Ready("boot_id"), first);
  RawEngine engine(socket_);
  const UniqueFd pidfd = local::OwnPidfd();
  ASSERT_TRUE(engine.Send(local::FrameOf(local::AttachMessage("a")), {pidfd.get()}));
  const auto frame = engine.Receive();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->boot_id(), std::stoull(Ready("boot_id"), nullptr, 16));
}

// FAULTS C3
TEST_F(NodeTest, AnEngineKilledRightAfterItsAttachLeavesNothing) {
  Start();
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t engine = ::fork();
  if (engine == 0) {
    RawEngine raw(socket_);
    const auto attached = raw.Attach("a");
    const char good = attached && attached->has_attach() ? 'y' : 'n';
    if (::write(told[1], &good, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char good = 0;
  ASSERT_EQ(::read(told[0], &good, 1), 1);
  EXPECT_EQ(good, 'y');
  EXPECT_EQ(Metric("pando_sessions"), 1);
  EXPECT_EQ(Metric("pando_replicas"), 1);
  ::kill(engine, SIGKILL);
  ::waitpid(engine, nullptr, 0);
  EXPECT_TRUE(WaitMetric("pando_sessions", 0));
  EXPECT_TRUE(WaitMetric("pando_replicas", 0));
  ::close(told[0]);
  ::close(told[1]);
}

TEST_F(NodeTest, HealthAndMetricsByHttp) {
  Start();
  int status = 0;
  EXPECT_EQ(Get("/healthz", &status), "ok\n");
  EXPECT_EQ(status, 200);
  EXPECT_EQ(Get("/readyz", &status), "ok\n");
  EXPECT_EQ(status, 200);
  Get("/nothing", &status);
  EXPECT_EQ(status, 404);
  RawEngine engine(socket_);
  ASSERT_TRUE(engine.Attach("secret-replica-name").has_value());
  ASSERT_TRUE(engine.IsServed());
  EXPECT_EQ(Metric("pando_probes_total"), 1);
  EXPECT_EQ(Metric("pando_sessions"), 1);
  EXPECT_EQ(Metric("pando_slab_bytes"), 64 << 20);
  EXPECT_EQ(Metric("pando_hit_tokens_total{tier=\"host\"}"), 0);
  EXPECT_EQ(Metric("pando_extents{owner=\"none\"}"), 1);
  // FAULTS G2
  RawEngine bad(socket_);
  ASSERT_TRUE(bad.Send(std::string(4, '\xff')));
  EXPECT_TRUE(bad.WaitHangUp());
  EXPECT_EQ(Metric("pando_frames_refused_total{reason=\"too_long\"}"), 1);
  // FAULTS F7
  EXPECT_EQ(Get("/metrics")->find("secret-replica-name"), std::string::npos);
}

// Sockets connected to the node's HTTP port, each of which has sent `bytes`.
std::vector<UniqueFd> Idle(const std::string& address, int count, std::string_view bytes) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < count; ++i) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

TEST_F(NodeTest, HttpClientsThatSayNothingKeepNobodyWaiting) {
  Start();
  const auto silent = Idle(Ready("metrics"), 20, "");
  const auto slow = Idle(Ready("metrics"), 20, "GET /hea");
  int status = 0;
  EXPECT_EQ(Get("/healthz", &status), "ok\n");
  EXPECT_EQ(status, 200);
  const auto more = Idle(Ready("metrics"), 20, "G");
  node_->Signal(SIGTERM);
  ExpectGoodEnd();
}

TEST_F(NodeTest, EndsThoughNobodyReadsItsLog) {
  int unread[2];
  ASSERT_EQ(::pipe2(unread, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (::write(unread[1], page.data(), page.size()) > 0) {
  }
  ::fcntl(unread[1], F_SETFL, 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(unread[1], STDERR_FILENO);
  node_ = std::make_unique<Child>(Command({}), false);
  ::dup2(before, STDERR_FILENO);
  for (const int fd : {before, unread[1]}) ::close(fd);
  ASSERT_TRUE(node_->ReadUntil("pando-node ready", Now() + kWait).has_value());
  node_->Signal(SIGTERM);
  ExpectGoodEnd();
  ::close(unread[0]);
}

TEST_F(NodeTest, EndsWellAtEverySignalThatAsksForIt) {
  for (const int signal : {SIGHUP, SIGQUIT, SIGINT}) {
    Start();
    node_->Signal(signal);
    ExpectGoodEnd();
  }
}

TEST_F(NodeTest, StopsAtAStep) {
  node_ = std::make_unique<Child>(Command({"--pause-at", "session.opened:2"}));
  ASSERT_TRUE(node_->ReadUntil("pando-node ready", Now() + kWait).has_value());
  RawEngine first(socket_);
  ASSERT_TRUE(first.Attach("a").has_value()) << "the first time it goes on";
  RawEngine second(socket_);
  EXPECT_EQ(node_->ReadLine(Now() + kWait), "paused session.opened");
  EXPECT_TRUE(node_->WaitStopped(Now() + kWait));
  node_->Signal(SIGCONT);
  EXPECT_TRUE(second.Attach("b").has_value());
}

TEST(NodeCommand, ListsItsStepsOnceEach) {
  const Ended ended = RunToEnd({kNode, "--list-steps"});
  EXPECT_EQ(ended.code, 0);
  std::istringstream lines(ended.text);
  std::set<std::string> steps;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(steps.insert(line).second) << line << " twice";
  }
  for (const char* step :
       {"node.listening", "attach.fds_received", "acquire.leased", "extent.sent", "drain.ended"}) {
    EXPECT_TRUE(steps.contains(step)) << step;
  }
}

TEST(NodeCommand, SaysItsVersion) {
  const Ended ended = RunToEnd({kNode, "--version"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.text, testing::StartsWith("pando-node "));
}

// FAULTS G5
TEST_F(NodeTest, RefusesWhatItCannotHave) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const Ended ended = RunToEnd(Command(more));
    EXPECT_EQ(ended.code, 2) << ended.text;
    return ended.text;
  };
  EXPECT_THAT(refused({"--host-slab", "1024TiB"}),
              AllOf(HasSubstr("--host-slab"), HasSubstr("has room for")));
  EXPECT_THAT(refused({"--socket", folder_ / "no" / "s.sock"}), HasSubstr("no directory"));
  EXPECT_THAT(refused({"--socket", "/tmp/" + std::string(150, 'x')}), HasSubstr("107"));
  EXPECT_THAT(refused({"--admin", folder_ / "no" / "s.sock"}), HasSubstr("no directory"));
  EXPECT_THAT(refused({"--key-secret", folder_ / "none"}), HasSubstr("--key-secret"));
  EXPECT_THAT(refused({"--no-such-flag"}), HasSubstr("--no-such-flag"));
  EXPECT_THAT(refused({"--metrics-listen", "8.8.8.8:80"}),
              AllOf(HasSubstr("--metrics-listen"), HasSubstr("an address of this machine"),
                    testing::Not(HasSubstr("free that port"))));
  std::ofstream(folder_ / "f.toml") << "sokcet = \"x\"\n";
  EXPECT_THAT(refused({"--config", folder_ / "f.toml"}), HasSubstr("sokcet"));
}

// FAULTS D2, G3, B2: an id that another life of the node gave names nothing in this one.
TEST_F(NodeTest, IdsOfAnotherLifeNameNothing) {
  std::set<uint64_t> sessions, claims;
  for (int life = 0; life < 3; ++life) {
    Start();
    RawEngine engine(socket_);
    const auto attached = engine.Attach("a");
    ASSERT_TRUE(attached && attached->has_attach());
    sessions.insert(attached->attach().session());
    v1::ClientMessage reserve;
    reserve.mutable_reserve()->mutable_prompt()->set_tokens(local::TokenBytes(0, 8));
    reserve.mutable_reserve()->set_to(2);
    const auto reserved = engine.Call(reserve);
    ASSERT_TRUE(reserved && reserved->has_reserve());
    claims.insert(reserved->reserve().claim());
    node_->Signal(SIGKILL);
    ASSERT_TRUE(node_->WaitExit(Now() + kWait));
  }
  for (const std::set<uint64_t>& ids : {sessions, claims}) {
    ASSERT_EQ(ids.size(), 3u);
    EXPECT_GT(*ids.rbegin() - *ids.begin(), 1ull << 32) << "far apart";
  }
}

// FAULTS D4: whoever leaves connections open, few enough are taken that the node can be asked.
TEST_F(NodeTest, CanBeAskedHoweverManyConnectionsAreLeftOpen) {
  std::string node = "ulimit -n 140 && exec";
  for (const std::string& word : Command({})) node += " " + word;
  node_ = std::make_unique<Child>(std::vector<std::string>{"/bin/sh", "-c", node});
  ASSERT_TRUE(node_->ReadUntil("pando-node ready", Now() + kWait).has_value());
  const std::vector<std::string> status = {PANDO_BIN_DIR "/pandoctl", "--admin",
                                           "unix:" + (folder_ / "admin.sock").string(), "status"};
  std::vector<std::unique_ptr<RawEngine>> engines, idle;
  for (int i = 0; i < 100; ++i) {
    engines.push_back(std::make_unique<RawEngine>(socket_));
    idle.push_back(std::make_unique<RawEngine>(folder_ / "admin.sock"));
    ASSERT_TRUE(engines.back()->connected() && idle.back()->connected());
  }
  EXPECT_TRUE(e2e::RunToEnd(status, Now() + kWait).has_value());
  EXPECT_TRUE(engines[0]->Attach("a").has_value());
  EXPECT_TRUE(engines[4]->Attach("e").has_value()) << "as many as were promised";
  EXPECT_TRUE(engines[5]->WaitHangUp());
  engines.clear();
  idle.clear();
  EXPECT_TRUE(e2e::RunToEnd(status, Now() + kWait).has_value());
  node_->Signal(SIGTERM);
  ExpectGoodEnd();
}

// While it executes itself anew it cannot hear a signal, so none must be able to end it then.
TEST_F(NodeTest, ASignalWaitsForItWhileItStarts) {
  node_ = std::make_unique<Child>(Command({}));
  const std::string proc = "/proc/" + std::to_string(node_->pid());
  const auto contents = [&](const char* name) {
    std::ifstream file(proc + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const int64_t deadline = Now() + kWait;
  while (contents("/environ").find("GLIBC_TUNABLES") == std::string::npos) {
    ASSERT_LT(Now(), deadline);
  }
  const std::string status = contents("/status");
  const size_t blocked = status.find("SigBlk:");
  ASSERT_NE(blocked, std::string::npos);
  const uint64_t mask = std::stoull(status.substr(blocked + 7), nullptr, 16);
  EXPECT_NE(mask & (1ull << (SIGTERM - 1)), 0u);
  node_->Signal(SIGTERM);
  ExpectGoodEnd();
}

// FAULTS G5: descriptors for the slab and the sessions.
TEST_F(NodeTest, SaysWhatDescriptorsItLacks) {
  std::string node = "exec";
  for (const std::string& word : Command({"--metrics-listen", "8.8.8.8:80"})) node += " " + word;
  const auto limited = [&](const std::string& limits) {
    const Ended ended = RunToEnd({"/bin/sh", "-c", "ulimit " + limits + " && " + node});
    EXPECT_EQ(ended.code, 2) << ended.text;
    return ended.text;
  };
  EXPECT_THAT(limited("-n 100"), AllOf(HasSubstr("found a hard limit of 100"),
                                       HasSubstr("131 at least"), HasSubstr("--host-slab")));
  EXPECT_THAT(limited("-n 200"), AllOf(HasSubstr("node.few_descriptors limit=200"),
                                       HasSubstr("sessions_max=35"), HasSubstr("8.8.8.8")));
  EXPECT_THAT(limited("-Sn 100"), testing::Not(HasSubstr("descriptors"))) << "soft is raised";
  node += " --peer-listen 127.0.0.1:0";
  EXPECT_THAT(limited("-n 400"), HasSubstr("wanted=4481")) << "two for a peer's connection";
}

// FAULTS G5
TEST_F(NodeTest, RefusesPortAndSocketsThatAreInUse) {
  Start();
  const std::string other = folder_ / "other.sock";
  const Ended port = RunToEnd({kNode, "--socket", other, "--admin", folder_ / "other-admin.sock",
                               "--host-slab", "64MiB", "--metrics-listen", Ready("metrics")});
  EXPECT_EQ(port.code, 2);
  EXPECT_THAT(port.text, AllOf(HasSubstr("--metrics-listen"), HasSubstr("free that port")));
  const Ended socket = RunToEnd(Command({"--admin", folder_ / "other-admin.sock"}));
  EXPECT_EQ(socket.code, 2);
  EXPECT_THAT(socket.text, HasSubstr("another process listens there"));
  const Ended admin = RunToEnd(
      {kNode, "--socket", other, "--admin", folder_ / "admin.sock", "--host-slab", "64MiB"});
  EXPECT_EQ(admin.code, 2);
  EXPECT_THAT(admin.text, HasSubstr("another process listens there"));
  RawEngine engine(socket_);
  EXPECT_TRUE(engine.Attach("a").has_value()) << "the first node did not notice";
}

}  // namespace
}  // namespace pando::runtime
