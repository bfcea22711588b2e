// What pandoctl says of a cluster, against an admin service whose numbers the test chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/e2e/ctl/fake_admin.h"
#include "tests/e2e/ctl/program.h"

namespace pando::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kBoot = 0xa1;

// 21 units of prompt, 15 of them hit.
void FillTotals(uint64_t unit, v1::NodeTotals* totals) {
  v1::Account* account = totals->mutable_account();
  account->set_requests(unit);
  account->set_prompt(21 * unit);
  account->set_hit_engine(1 * unit);
  account->set_hit_device(2 * unit);
  account->set_hit_host(3 * unit);
  account->set_hit_disk(4 * unit);
  account->set_hit_peer(5 * unit);
  account->set_computed(6 * unit);
  account->set_failed(2 * unit);
  totals->set_pages(100 * unit);
  totals->set_pages_free(40 * unit);
  totals->set_blocks(60 * unit);
  totals->set_uptime_ms(1000 * unit);
}

v1::ClusterPeer SomePeer(const std::string& name, uint64_t boot, uint64_t unit) {
  v1::ClusterPeer peer;
  peer.set_name(name);
  peer.set_address(name + ".example:7400");
  peer.set_boot_id(boot);
  peer.set_state(v1::ClusterPeer::CONNECTED);
  peer.set_view_complete(true);
  peer.set_blocks(12'345);
  peer.set_prefilling(6);
  peer.set_heard_ago_ms(1'500);
  peer.set_bytes_per_s(3 << 20);
  peer.set_grants_asked(31);
  peer.set_grants_missed(32);
  peer.set_grants_refused(33);
  peer.set_pulls(34);
  peer.set_pages_pulled(35);
  peer.set_bytes_pulled(36 << 20);
  peer.set_pages_bad(37);
  peer.set_pages_failed(38);
  peer.set_pull_micros(39'000);
  FillTotals(unit, peer.mutable_totals());
  peer.set_totals_ago_ms(1'500 * unit);
  return peer;
}

class ClusterViewTest : public ::testing::Test {
 protected:
  ClusterViewTest() {
    v1::Status& status = admin_.status;
    status.set_name("a");
    status.set_boot_id(kBoot);
    v1::Cluster* cluster = status.mutable_cluster();
    FillTotals(1, cluster->mutable_totals());
    cluster->set_granted_bytes(21);
    cluster->set_guests(22);
    cluster->set_feeds(23);
    cluster->set_told_blocks(24);
    cluster->set_directory_blocks(25);
    cluster->set_directory_bytes(26);
    cluster->set_fetches(27);
    *cluster->add_peers() = SomePeer("b", 0xb2, 2);
    *cluster->add_peers() = SomePeer("c", 0xc3, 3);
  }
  v1::ClusterPeer* peer(int i) { return admin_.status.mutable_cluster()->mutable_peers(i); }
  v1::ClusterPeer* Add(const v1::ClusterPeer& peer) {
    v1::ClusterPeer* added = admin_.status.mutable_cluster()->add_peers();
    *added = peer;
    return added;
  }
  Ran Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--admin", admin_.address()});
    return Pandoctl(arguments);
  }
  json AskJson(const std::vector<std::string>& arguments) {
    const Ran ran = Ask(arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }

  FakeAdmin admin_;
};

TEST_F(ClusterViewTest, PeersAsJsonHasAllThatTheNodeSays) {
  peer(1)->set_closed_for_ms(900);
  peer(1)->set_why("it is gone");
  peer(1)->clear_heard_ago_ms();
  const json cluster = AskJson({"peers", "--json"})["cluster"];
  EXPECT_EQ(cluster["granted_bytes"], 21);
  EXPECT_EQ(cluster["guests"], 22);
  EXPECT_EQ(cluster["feeds"], 23);
  EXPECT_EQ(cluster["told_blocks"], 24);
  EXPECT_EQ(cluster["directory_blocks"], 25);
  EXPECT_EQ(cluster["directory_bytes"], 26);
  EXPECT_EQ(cluster["fetches"], 27);
  ASSERT_EQ(cluster["peers"].size(), 2u);
  const json expected = {{"name", "b"},
                         {"address", "b.example:7400"},
                         {"boot_id", "00000000000000b2"},
                         {"state", "connected"},
                         {"why", ""},
                         {"view_complete", true},
                         {"blocks", 12'345},
                         {"prefilling", 6},
                         {"heard_ago_ms", 1'500},
                         {"breaker", {{"open", false}, {"for_ms", nullptr}}},
                         {"bytes_per_s", 3.0 * (1 << 20)},
                         {"grants", {{"asked", 31}, {"missed", 32}, {"refused", 33}}},
                         {"pull",
                          {{"pulls", 34},
                           {"pages", 35},
                           {"bytes", 36 << 20},
                           {"micros", 39'000},
                           {"bad", 37},
                           {"failed", 38}}}};
  EXPECT_EQ(cluster["peers"][0], expected);
  const json open = {{"open", true}, {"for_ms", 900}};
  EXPECT_EQ(cluster["peers"][1]["breaker"], open);
  EXPECT_EQ(cluster["peers"][1]["why"], "it is gone");
  EXPECT_TRUE(cluster["peers"][1]["heard_ago_ms"].is_null());
  EXPECT_EQ(AskJson({"status", "--json"})["cluster"], cluster) << "the same in the status";
}

TEST_F(ClusterViewTest, PeersForPeople) {
  peer(1)->set_state(v1::ClusterPeer::INCOMPATIBLE);
  peer(1)->set_why("it refused: another seed\x1b[31m");
  peer(1)->set_closed_for_ms(2'000);
  const Ran ran = Ask({"peers"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("b.example:7400  00000000000000b2  connected"));
  EXPECT_THAT(ran.out, HasSubstr("1.5 s ago  complete  12,345"));
  EXPECT_THAT(ran.out, HasSubstr("open for 2.0 s"));
  EXPECT_THAT(ran.out, HasSubstr("36.0 MiB"));
  EXPECT_THAT(ran.out, HasSubstr("0.039"));
  EXPECT_THAT(ran.out, HasSubstr("3.0 MiB/s"));
  EXPECT_THAT(ran.out, HasSubstr("c.example:7400: it refused: another seed\\x1b[31m\n"));
}

TEST_F(ClusterViewTest, WaitsForPeersThatAreNotKnownYet) {
  EXPECT_EQ(Ask({"peers", "--wait", "1"}).exit, 0);
  peer(1)->set_view_complete(false);
  const Ran ran = Ask({"peers", "--wait", "1"});
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("not all peers are connected"));
  peer(1)->set_state(v1::ClusterPeer::SELF);
  EXPECT_EQ(Ask({"peers", "--wait", "1"}).exit, 0) << "the node itself is no peer to wait for";
}

TEST_F(ClusterViewTest, ANodeWithoutAClusterSaysSo) {
  admin_.status.clear_cluster();
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"peers"}, {"stats", "--cluster"}}) {
    const Ran ran = Ask(line);
    EXPECT_EQ(ran.exit, 0);
    EXPECT_THAT(ran.out, HasSubstr("in no cluster"));
  }
  EXPECT_TRUE(AskJson({"peers", "--json"})["cluster"].is_null());
  EXPECT_TRUE(AskJson({"stats", "--cluster", "--json"})["cluster"].is_null());
  EXPECT_TRUE(AskJson({"status", "--json"})["cluster"].is_null());
}

// FAULTS F2, F3: counts in tokens, which sum up, each with the age of its figures.
TEST_F(ClusterViewTest, SumsOverAllNodesAreExact) {
  const json stats = AskJson({"stats", "--cluster", "--json"});
  ASSERT_EQ(stats["nodes"].size(), 3u);
  const json tokens = {{"prompt", 126},  {"hit_engine", 6}, {"hit_device", 12}, {"hit_host", 18},
                       {"hit_disk", 24}, {"hit_peer", 30},  {"computed", 36}};
  EXPECT_EQ(stats["cluster"]["tokens"], tokens);
  EXPECT_EQ(stats["cluster"]["requests"], 6);
  EXPECT_EQ(stats["cluster"]["failed"], 12);
  EXPECT_EQ(stats["cluster"]["pages"], 600);
  EXPECT_EQ(stats["cluster"]["pages_free"], 240);
  EXPECT_EQ(stats["cluster"]["blocks"], 360);
  EXPECT_EQ(stats["cluster"]["nodes"], 3);
  EXPECT_EQ(stats["cluster"]["not_heard"], 0);
  EXPECT_EQ(stats["cluster"]["oldest_age_ms"], 4'500);
  EXPECT_EQ(stats["nodes"][0]["name"], "a");
  EXPECT_EQ(stats["nodes"][0]["age_ms"], 0);
  EXPECT_EQ(stats["nodes"][1]["age_ms"], 3'000);
  EXPECT_EQ(stats["nodes"][2]["tokens"]["prompt"], 63);
  const Ran ran = Ask({"stats", "--cluster"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("4.5 s"));
  // The share stands beside what it is made of: 90 of 126.
  EXPECT_THAT(ran.out, AllOf(HasSubstr("126    90"), HasSubstr("71.43 %"), HasSubstr("3 nodes")));
}

// FAULTS F2: a node that was not heard is named, not silently left out; nobody is counted twice.
TEST_F(ClusterViewTest, EachNodeIsCountedOnceOrNamedAsMissing) {
  peer(1)->clear_totals();
  v1::ClusterPeer twice = SomePeer("b", 0xb2, 2);
  twice.set_address("127.0.0.1:7400");
  twice.set_totals_ago_ms(7);
  Add(twice);
  v1::ClusterPeer self = SomePeer("a", kBoot, 9);
  self.set_state(v1::ClusterPeer::SELF);
  Add(self);
  const json stats = AskJson({"stats", "--cluster", "--json"});
  ASSERT_EQ(stats["nodes"].size(), 3u);
  EXPECT_EQ(stats["cluster"]["tokens"]["prompt"], 63);
  EXPECT_EQ(stats["cluster"]["nodes"], 2);
  EXPECT_EQ(stats["cluster"]["not_heard"], 1);
  EXPECT_EQ(stats["nodes"][1]["age_ms"], 7) << "the fresher figures";
  EXPECT_EQ(stats["nodes"][2]["heard"], false);
  EXPECT_THAT(Ask({"stats", "--cluster"}).out,
              HasSubstr("c (c.example:7400) has told no figures: it is not in the sum"));
}

// FAULTS F3
TEST_F(ClusterViewTest, AnAccountThatDoesNotBalanceIsSaidAndNotSummed) {
  v1::Account* lie = peer(1)->mutable_totals()->mutable_account();
  lie->set_computed(1);
  const Ran ran = Ask({"stats", "--cluster"});
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err,
              HasSubstr("the account of c does not balance: 63 prompt tokens, 45 hit + 1"));
  // Nor one whose sum is right only because it wraps around.
  lie->set_computed(18 + lie->hit_host() + 1);
  lie->set_hit_host(UINT64_MAX);
  const Ran wrapped = Ask({"stats", "--cluster", "--json"});
  EXPECT_EQ(wrapped.exit, 1);
  const json cluster = json::parse(wrapped.out)["cluster"];
  EXPECT_EQ(cluster["unbalanced"], 1);
  EXPECT_EQ(cluster["nodes"], 2);
  EXPECT_EQ(cluster["tokens"]["prompt"], 63);
}

// FAULTS G1, G2: a cluster of nothing, and numbers at their limits.
TEST_F(ClusterViewTest, EmptyAndExtremeFiguresArePrinted) {
  admin_.status.mutable_cluster()->Clear();
  const Ran empty = Ask({"stats", "--cluster"});
  EXPECT_EQ(empty.exit, 0) << empty.err;
  EXPECT_THAT(empty.out, AllOf(HasSubstr("1 node"), Not(HasSubstr("nan"))));
  EXPECT_THAT(Ask({"peers"}).out, HasSubstr("no peers: --peers names none"));
  v1::ClusterPeer* last = Add(SomePeer("z", 1, 1));
  last->set_blocks(UINT64_MAX);
  last->set_heard_ago_ms(UINT64_MAX);
  last->set_bytes_per_s(1e300);
  EXPECT_EQ(Ask({"peers"}).exit, 0);
  EXPECT_EQ(AskJson({"peers", "--json"})["cluster"]["peers"][0]["blocks"], UINT64_MAX);
}

TEST_F(ClusterViewTest, TreeSaysWhoElseHoldsARun) {
  admin_.status.add_spaces();
  v1::Run* run = admin_.runs.add_runs();
  run->set_blocks(32);
  run->set_complete_blocks(32);
  run->set_peers(9);
  for (int i = 0; i < 8; ++i) run->add_peer_names("n" + std::to_string(i));
  run = admin_.runs.add_runs();
  run->set_run(1);
  run->set_depth_blocks(32);
  run->set_blocks(1);
  run->set_peers(1);
  run->add_peer_names("b\nc");
  const Ran ran = Ask({"tree", "--peers"});
  EXPECT_TRUE(admin_.last_asked.peers());
  EXPECT_THAT(ran.out,
              HasSubstr("32 blocks  also on 9 peers: n0, n1, n2, n3, n4, n5, n6, n7, ..."));
  EXPECT_THAT(ran.out, HasSubstr("1 block, 1 of them being written  also on 1 peer: b\\x0ac\n"));
  const json tree = AskJson({"tree", "--peers", "--json"});
  EXPECT_EQ(tree["spaces"][0]["runs"][0]["peers"], 9);
  EXPECT_EQ(tree["spaces"][0]["runs"][1]["peer_names"], json({"b\nc"}));
  EXPECT_FALSE(AskJson({"tree", "--json"})["spaces"][0]["runs"][0].contains("peers"));
  EXPECT_FALSE(admin_.last_asked.peers());
}

}  // namespace
}  // namespace pando::e2e
