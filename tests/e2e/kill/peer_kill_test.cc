// Two real nodes that pull from each other, one of them killed at each named step between them: the
// engines go on, no byte is wrong, what the living node held for the dead one comes back, and the
// dead one's next life is a peer again. FAULTS B2, C3, D6, E7.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

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

INSTANTIATE_TEST_SUITE_P(Steps, PeerKilled,
                         ::testing::Values("ticket.issued", "ticket.answered", "fetch.started",
                                           "fetch.pulling", "fetch.finished", "grant.given",
                                           "grant.ended"));

}  // namespace
}  // namespace pando::e2e
