// Two real nodes that pull from each other, one of them killed at each named step between them: the
// engines go on, no byte is wrong, what the living node held for the dead one comes back, and the
// dead one's next life is a peer again. FAULTS B2, C3, D6, E7.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/process/child.h"
#include "tests/e2e/process/engine_lines.h"
#include "tests/e2e/process/node_process.h"
#include "tests/e2e/process/peer_flags.h"

namespace pando::e2e {
namespace {

constexpr int64_t kPatience = 30 * kSecond;

CycleLine RunCycle(Child& engine, const std::string& what) {
  engine.Send("cycle " + what);
  return ReadCycle(engine, Now() + kPatience).value_or(CycleLine{});
}

void Attach(Child& engine) {
  engine.Send("attach");
  ASSERT_TRUE(engine.ReadUntil("attached", Now() + kPatience));
}

// Waits until a peer of `node` has told of `blocks` blocks.
bool WaitKnown(const NodeProcess& node, uint64_t blocks) {
  for (const int64_t deadline = Now() + kPatience; Now() < deadline; poll(nullptr, 0, 20)) {
    const nlohmann::json status = node.Status();
    if (!status.is_object()) continue;
    for (const nlohmann::json& peer : status["cluster"]["peers"]) {
      if (peer["blocks"] == blocks) return true;
    }
  }
  return false;
}

class PeerKilled : public ::testing::TestWithParam<const char*> {};

TEST_P(PeerKilled, TheOthersGoOn) {
  const std::string step = GetParam();
  const bool owner_dies = step.starts_with("grant.");
  const std::vector<std::string> ports = FreePorts(2);
  const std::vector<std::string> pause = {"--pause-at", step};
  const auto flags = [&](bool owner, bool paused) {
    return PeerFlags(owner ? "owner" : "asker", ports[owner ? 0 : 1], ports[owner ? 1 : 0],
                     paused ? pause : std::vector<std::string>{});
  };
  NodeProcess owner(flags(true, owner_dies));
  NodeProcess asker(flags(false, !owner_dies));
  NodeProcess& victim = owner_dies ? owner : asker;
  NodeProcess& survivor = owner_dies ? asker : owner;
  Child there(EngineArgs(owner, "engine", "both", 0, 1, "")),
      here(EngineArgs(asker, "engine", "both", 0, 1, ""));
  Attach(there);
  Attach(here);
  EXPECT_EQ(RunCycle(there, "7 1024").stored, 64);
  ASSERT_TRUE(WaitKnown(asker, 64));

  here.Send("cycle 7 1024");  // asks for what the other has
  ASSERT_TRUE(victim.child().ReadUntil("paused", Now() + kPatience)) << "step never reached";
  victim.child().Signal(SIGKILL);
  ASSERT_TRUE(victim.child().WaitExit(Now() + kPatience));
  ASSERT_TRUE(here.ReadUntil("cycle ", Now() + kPatience));
  // The next life of the victim, where nothing is known of the last one.
  ASSERT_TRUE(victim.Restart(flags(owner_dies, false)));
  Attach(there);
  Attach(here);
  EXPECT_EQ(RunCycle(here, "7 1024").wrong, 0);
  EXPECT_EQ(RunCycle(there, "7 1024").wrong, 0);
  ASSERT_TRUE(WaitKnown(asker, 64));
  const CycleLine again = RunCycle(here, "7 1024");
  EXPECT_EQ(again.wrong, 0);
  EXPECT_EQ(again.loaded, 63);
  there.Signal(SIGKILL);
  here.Signal(SIGKILL);
  EXPECT_EQ(survivor.WaitBase(Now() + kPatience), "");
  EXPECT_EQ(victim.WaitBase(Now() + kPatience), "");
  EXPECT_TRUE(survivor.SelfCheck());
  EXPECT_TRUE(victim.SelfCheck());
}

// The data port is free again at once, also when its connections were cut off by the node's death.
TEST(PeerRestart, TheSamePortsCanBeHadAgain) {
  const std::vector<std::string> ports = FreePorts(3);
  const auto data = std::vector<std::string>{"--data-listen", "127.0.0.1:" + ports[2]};
  const auto flags = PeerFlags("owner", ports[0], ports[1], data);
  NodeProcess owner(flags), asker(PeerFlags("asker", ports[1], ports[0], {}));
  bool first = true;
  for (const int signal : {SIGKILL, SIGTERM, SIGKILL}) {
    Child there(EngineArgs(owner, "engine", "both", 0, 1, "")),
        here(EngineArgs(asker, "engine", "both", 0, 1, ""));
    Attach(there);
    Attach(here);
    const std::string cycle =
        std::to_string(signal) + std::to_string(owner.child().pid()) + " 1024";
    EXPECT_EQ(RunCycle(there, cycle).stored, 64);
    ASSERT_TRUE(WaitKnown(asker, 64));
    const int64_t loaded = RunCycle(here, cycle).loaded;
    // Later one may fail, on the connection to the life before.
    EXPECT_TRUE(loaded == 63 || !first);
    first = false;
    owner.child().Signal(signal);
    ASSERT_TRUE(owner.child().WaitExit(Now() + kPatience));
    ASSERT_TRUE(owner.Restart(flags)) << "after signal " << signal;
  }
}

// Which addresses of this process's network a process listens on, in the kernel's hex form.
std::set<std::string> ListeningOn(pid_t pid) {
  std::set<std::string> inodes, found;
  const std::string proc = "/proc/" + std::to_string(pid);
  for (const auto& fd : std::filesystem::directory_iterator(proc + "/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(fd.path(), gone);
    if (to.starts_with("socket:[")) inodes.insert(to.substr(8, to.size() - 9));
  }
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(proc + table);
    std::string line;
    std::getline(file, line);  // names
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, skip, inode;
      words >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) words >> skip;
      words >> inode;
      if (state == "0A" && inodes.contains(inode)) found.insert(local.substr(0, local.find(':')));
    }
  }
  return found;
}

// UCX opens ports of its own: they are no way in from elsewhere either.
TEST(PeerPorts, ANodeOfLoopbackListensNowhereElse) {
  const std::vector<std::string> ports = FreePorts(2);
  NodeProcess node(PeerFlags("alone", ports[0], ports[1], {}));
  const std::set<std::string> addresses = ListeningOn(node.child().pid());
  EXPECT_FALSE(addresses.empty());
  for (const std::string& address : addresses) EXPECT_THAT(address, testing::EndsWith("0100007F"));
}

INSTANTIATE_TEST_SUITE_P(Steps, PeerKilled,
                         ::testing::Values("ticket.issued", "ticket.answered", "fetch.started",
                                           "fetch.pulling", "fetch.finished", "grant.given",
                                           "grant.ended"));

}  // namespace
}  // namespace pando::e2e
