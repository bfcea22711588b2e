// pandoctl on two real nodes that pull pages from each other over loopback TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/ctl/program.h"
#include "tests/e2e/process/node_process.h"
#include "tests/e2e/process/peer_flags.h"
#include "tests/paths.h"

namespace pando::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kTrace = PANDO_TEST_DATA "/conversation_trace.jsonl.gz";
constexpr uint64_t kBlockTokens = 64;
constexpr int64_t kPatience = 20 * kSecond;

// Two nodes, a and b.
struct Pair {
  explicit Pair(const std::vector<std::string>& more = {})
      : ports(FreePorts(2)),
        a(PeerFlags("a", ports[0], ports[1], more)),
        b(PeerFlags("b", ports[1], ports[0], more)) {}

  std::vector<std::string> ports;
  NodeProcess a, b;
};

bool WaitUntil(const std::function<bool()>& holds) {
  for (const int64_t deadline = Now() + kPatience; !holds();) {
    if (Now() >= deadline) return false;
    poll(nullptr, 0, 20);
  }
  return true;
}

json Ask(const NodeProcess& node, std::vector<std::string> command) {
  command.insert(command.begin(), {"--admin", node.admin()});
  command.emplace_back("--json");
  const Ran ran = Pandoctl(command);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  return json::parse(ran.out, nullptr, false);
}

// The other node, as this one sees it. Its own address is in the list too.
json PeerOf(const NodeProcess& node) {
  const json all = Ask(node, {"peers"});
  for (const json& peer : all["cluster"]["peers"]) {
    if (peer["state"] != "self") return peer;
  }
  return json::object();
}

void WaitKnown(const NodeProcess& node) {
  const Ran ran = Pandoctl({"--admin", node.admin(), "peers", "--wait", "20"});
  EXPECT_EQ(ran.exit, 0) << ran.out;
}

// All that `owner` has is known to `other`.
bool WaitTold(const NodeProcess& owner, const NodeProcess& other) {
  return WaitUntil([&] {
    const json status = owner.Status();
    const uint64_t blocks = status["spaces"][0]["blocks"];
    return blocks > 0 && PeerOf(other)["blocks"] == blocks;
  });
}

class ClusterReplayTest : public ::testing::Test {
 protected:
  ClusterReplayTest() {
    setenv("UCX_TLS", "tcp", 1);
    std::string pattern = std::filesystem::temp_directory_path() / "pando-replay-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~ClusterReplayTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Line(const std::string& sockets, const std::string& limit,
                                std::vector<std::string> more = {}) {
    const std::string file = folder_ / ("json" + std::to_string(++files_));
    std::vector<std::string> line = {"replay",
                                     "--trace",
                                     kTrace,
                                     "--replicas",
                                     sockets,
                                     "--limit",
                                     limit,
                                     "--block-tokens",
                                     std::to_string(kBlockTokens),
                                     "--json",
                                     file};
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  json Result(int file) const {
    std::ifstream in(folder_ / ("json" + std::to_string(file)));
    json result = json::parse(in, nullptr, false);
    EXPECT_TRUE(result.is_object());
    ExpectBalance(result);
    return result;
  }
  json Replay(const std::string& sockets, const std::string& limit,
              const std::vector<std::string>& more = {}) {
    last_ = Pandoctl(Line(sockets, limit, more), 120);
    EXPECT_EQ(last_.exit, 0) << last_.out << last_.err;
    return Result(files_);
  }
  // FAULTS F3: tokens, pages and the nodes' parts sum up.
  static void ExpectBalance(const json& result) {
    uint64_t sum = 0;
    for (const auto& [name, count] : result["tokens"].items()) {
      if (name != "prompt") sum += count.get<uint64_t>();
    }
    EXPECT_EQ(result["tokens"]["prompt"], sum);
    EXPECT_EQ(result["pages"]["wrong"], 0);
    for (const char* name : {"prompt", "hit_host", "hit_peer", "computed"}) {
      uint64_t of_nodes = 0;
      for (const json& node : result["nodes"]) of_nodes += node["tokens"][name].get<uint64_t>();
      EXPECT_EQ(result["tokens"][name], of_nodes) << name;
    }
    for (const char* name : {"pages", "bytes", "failed", "declined"}) {
      uint64_t of_nodes = 0;
      for (const json& node : result["nodes"]) of_nodes += node["pull"][name].get<uint64_t>();
      EXPECT_EQ(result["pull"][name], of_nodes) << name;
    }
  }
  // FAULTS C1
  static void ExpectAtRest(const NodeProcess& node) {
    EXPECT_EQ(node.WaitBase(Now() + kPatience), "");
    EXPECT_TRUE(node.SelfCheck());
  }

  std::filesystem::path folder_;
  int files_ = 0;
  Ran last_;
};

// FAULTS F2, F3
TEST_F(ClusterReplayTest, WhatOneNodeComputedTheOtherPulls) {
  Pair pair;
  WaitKnown(pair.b);
  const json first = Replay(pair.a.socket(), "20");
  ASSERT_TRUE(WaitTold(pair.a, pair.b));
  const json second = Replay(pair.b.socket(), "20");
  EXPECT_EQ(first["tokens"]["hit_peer"], 0);
  // One token of each prompt is left to compute, and what fills no block.
  EXPECT_EQ(second["pages"]["stored"], 0) << "nothing was computed that there was";
  EXPECT_EQ(second["tokens"]["hit_host"], first["tokens"]["hit_host"])
      << "hit here what had been pulled here before";
  EXPECT_EQ(second["tokens"]["hit_peer"], second["pull"]["pages"].get<uint64_t>() * kBlockTokens);
  EXPECT_EQ(second["pull"]["bytes"], second["pull"]["pages"].get<uint64_t>() * 4096);
  EXPECT_EQ(second["pull"]["failed"], 0);
  EXPECT_GT(second["pull"]["seconds"], 0.0);
  EXPECT_GT(second["latency_us"]["pull"]["p50"], 0.0);
  EXPECT_GE(second["latency_us"]["await"]["p50"], second["latency_us"]["pull"]["p50"]);
  EXPECT_EQ(second["waits"]["more"], second["waits"]["tickets"]);
  EXPECT_EQ(second["nodes"][0]["name"], "b");
  EXPECT_THAT(last_.out, HasSubstr("hit at a peer"));

  // Both nodes say the same.
  EXPECT_EQ(Ask(pair.b, {"stats"})["tokens"]["hit_peer"], second["tokens"]["hit_peer"]);
  EXPECT_EQ(PeerOf(pair.b)["pull"]["pages"], second["pull"]["pages"]);
  EXPECT_EQ(pair.a.Status()["counters"]["peer_pages_sent"], second["pull"]["pages"]);
  EXPECT_EQ(pair.b.Status()["counters"]["peer_pages_stored"], second["pull"]["pages"]);
  ExpectAtRest(pair.a);
  ExpectAtRest(pair.b);
}

// FAULTS F2, F3: any node prints all nodes and their sum.
TEST_F(ClusterReplayTest, AnyNodeTellsTheSumsOfAll) {
  Pair pair;
  WaitKnown(pair.a);
  const json result = Replay(pair.a.socket() + "," + pair.b.socket(), "30");
  for (const NodeProcess* node : {&pair.a, &pair.b}) {
    json stats;
    EXPECT_TRUE(WaitUntil([&] {
      stats = Ask(*node, {"stats", "--cluster"});
      return stats["cluster"]["requests"] == 30;
    })) << stats;
    EXPECT_EQ(stats["nodes"].size(), 2u) << "its own address in --peers is no other node";
    for (const char* name : {"prompt", "hit_host", "hit_peer", "computed"}) {
      EXPECT_EQ(stats["cluster"]["tokens"][name], result["tokens"][name]) << name;
    }
    EXPECT_EQ(stats["cluster"]["not_heard"], 0);
    EXPECT_GE(stats["cluster"]["oldest_age_ms"], 0);
  }
}

TEST_F(ClusterReplayTest, TheTreeSaysWhoElseHoldsARun) {
  Pair pair;
  WaitKnown(pair.b);
  Replay(pair.a.socket(), "2");
  ASSERT_TRUE(WaitTold(pair.a, pair.b));
  Replay(pair.b.socket(), "1");
  const auto held_by_a = [&] {
    uint64_t runs = 0;
    const json tree = Ask(pair.b, {"tree", "--peers"});
    for (const json& run : tree["spaces"][0]["runs"]) {
      runs += run["peers"] == 1 && run["peer_names"] == json({"a"}) ? 1 : 0;
    }
    return runs;
  };
  EXPECT_GT(held_by_a(), 0u);
  EXPECT_THAT(Pandoctl({"--admin", pair.b.admin(), "tree", "--peers"}).out,
              HasSubstr("also on 1 peer: a"));
  EXPECT_THAT(Pandoctl({"--admin", pair.b.admin(), "tree"}).out, Not(HasSubstr("peer")));
}

TEST_F(ClusterReplayTest, WithoutSharingNothingIsPulled) {
  Pair pair({"--no-sharing"});
  WaitKnown(pair.b);
  const json result = Replay(pair.a.socket() + "," + pair.b.socket(), "30");
  EXPECT_EQ(result["tokens"]["hit_peer"], 0);
  EXPECT_EQ(result["pull"]["pages"], 0);
  EXPECT_EQ(result["waits"]["tickets"], 0) << "nor waited for";
  EXPECT_LT(result["tokens"]["hit_host"], result["ceiling"]["hit_tokens"]);
}

// FAULTS E7: a request whose prefix another node computes waits for it and computes nothing.
TEST_F(ClusterReplayTest, WaitsForWhatAnotherNodeComputes) {
  Pair pair;
  WaitKnown(pair.b);
  std::vector<std::string> slow =
      Line(pair.a.socket(), "1", {"--prefill-rate", "3000", "--prefill-speedup", "1"});
  slow.insert(slow.begin(), PandoctlPath());
  Program computing(slow);
  ASSERT_TRUE(WaitUntil([&] { return PeerOf(pair.b)["prefilling"] > 0; }));
  const json result = Replay(pair.b.socket(), "1", {"--await-ms", "20000"});
  EXPECT_EQ(computing.Wait().exit, 0);
  EXPECT_EQ(result["waits"], json({{"tickets", 1}, {"more", 1}, {"late", 0}}));
  EXPECT_EQ(result["pages"]["stored"], 0);
  EXPECT_GT(result["tokens"]["hit_peer"], 0);
  ExpectAtRest(pair.b);
}

// FAULTS D1, E7: it waits no longer than it wants to.
TEST_F(ClusterReplayTest, GoesOnAtItsDeadlineAndComputesItself) {
  Pair pair;
  WaitKnown(pair.b);
  std::vector<std::string> slow =
      Line(pair.a.socket(), "1", {"--prefill-rate", "1000", "--prefill-speedup", "1"});
  slow.insert(slow.begin(), PandoctlPath());
  Program computing(slow);
  ASSERT_TRUE(WaitUntil([&] { return PeerOf(pair.b)["prefilling"] > 0; }));
  const json result = Replay(pair.b.socket(), "1", {"--await-ms", "50"});
  EXPECT_EQ(result["waits"], json({{"tickets", 1}, {"more", 0}, {"late", 1}}));
  EXPECT_EQ(result["tokens"]["computed"], result["tokens"]["prompt"]);
  EXPECT_GT(result["pages"]["stored"], 0);
  EXPECT_EQ(computing.Wait().exit, 0) << "who computes does not notice";
}

TEST_F(ClusterReplayTest, SaysWhenANodesFiguresAreNotKnown) {
  NodeProcess node;
  const json result = Replay(node.socket(), "2", {"--admins", "unix:/nowhere/admin.sock"});
  EXPECT_EQ(result["nodes"][0]["watched"], false);
  EXPECT_THAT(last_.out, HasSubstr("what it pulled from peers is not known"));
}

// What README shows to those who write a connector.
TEST_F(ClusterReplayTest, TheExampleEngineLoadsWhatAPeerHas) {
  Pair nodes;
  WaitKnown(nodes.b);
  const auto engine = [](const NodeProcess& node) {
    return e2e::Run({PANDO_BIN_DIR "/example_engine", node.socket()}).out;
  };
  EXPECT_EQ(engine(nodes.a), "computed 6 blocks, loaded 0\n");
  ASSERT_TRUE(WaitTold(nodes.a, nodes.b));
  EXPECT_EQ(engine(nodes.b), "computed 0 blocks, loaded 6\n");
  ExpectAtRest(nodes.b);
}

}  // namespace
}  // namespace pando::e2e
