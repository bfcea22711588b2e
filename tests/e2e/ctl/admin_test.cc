// pandoctl's views of a node, against an admin service whose numbers the test chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/e2e/ctl/fake_admin.h"
#include "tests/e2e/ctl/program.h"
#include "tests/paths.h"

namespace pando::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void FillAccount(uint64_t scale, v1::Account* account) {
  account->set_requests(1 * scale);
  account->set_prompt(210 * scale);
  account->set_hit_engine(10 * scale);
  account->set_hit_device(20 * scale);
  account->set_hit_host(30 * scale);
  account->set_hit_disk(40 * scale);
  account->set_hit_peer(50 * scale);
  account->set_computed(60 * scale);
  account->set_failed(5 * scale);
}

void FillPages(uint64_t scale, v1::PageCounts* pages) {
  pages->set_free(1 * scale);
  pages->set_reserved(2 * scale);
  pages->set_committed(3 * scale);
  pages->set_held(4 * scale);
  pages->set_receiving(5 * scale);
  pages->set_quarantined(6 * scale);
}

v1::Space SomeSpace(uint32_t id) {
  v1::Space space;
  space.set_space(id);
  space.set_block_tokens(16);
  space.set_page_bytes(65536);
  space.set_shards(2);
  v1::SpaceField* field = space.add_fields();
  field->set_name("model");
  field->set_value("aspen-7b");
  FillPages(1000, space.mutable_pages());
  FillAccount(1, space.mutable_account());
  space.set_extents(7);
  space.set_runs(8);
  space.set_blocks(9);
  return space;
}

v1::Status SomeStatus() {
  v1::Status status;
  status.set_boot_id(0x00c0ffee12345678);
  status.set_name("grove");
  status.set_version("0.1.0");
  status.set_uptime_ms(125'000);
  status.set_ready(true);
  FillPages(2000, status.mutable_pages());
  FillAccount(2, status.mutable_account());
  status.set_leases(11);
  status.set_reservations(12);
  status.set_holds(13);
  status.set_tickets(14);
  status.set_grants(15);
  status.set_requests(16);
  status.set_sessions(17);
  status.set_replicas(18);
  status.set_fds(19);
  status.set_threads(20);
  status.set_extents(21);
  v1::Counter* counter = status.add_counters();
  counter->set_name("pages_bad");
  counter->set_value(3);
  for (const char* reason : {"too_long", "malformed"}) {
    v1::Counter* refused = status.add_counters();
    refused->set_name("frames_refused");
    refused->set_reason(reason);
    refused->set_value(4);
  }
  *status.add_spaces() = SomeSpace(0);
  *status.add_spaces() = SomeSpace(1);
  return status;
}

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() { admin_.status = SomeStatus(); }
  Ran Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--admin", admin_.address()});
    return Pandoctl(arguments);
  }
  json AskJson(const std::vector<std::string>& arguments) {
    const Ran ran = Ask(arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
  void AddRun(uint32_t run, uint32_t parent, uint32_t depth, uint32_t blocks) {
    v1::Run* added = admin_.runs.add_runs();
    added->set_run(run);
    added->set_parent(parent);
    added->set_depth_blocks(depth);
    added->set_blocks(blocks);
    added->set_complete_blocks(blocks);
  }

  FakeAdmin admin_;
};

TEST_F(AdminTest, StatusJsonHasTheAgreedKeys) {
  const json status = AskJson({"status", "--json"});
  EXPECT_EQ(status["boot_id"], "00c0ffee12345678");
  const json pages = {{"free", 2000}, {"reserved", 4000},   {"committed", 6000},
                      {"held", 8000}, {"receiving", 10000}, {"quarantined", 12000}};
  EXPECT_EQ(status["pages"], pages);
  uint64_t expected = 11;
  for (const char* key : {"leases", "reservations", "holds", "tickets", "grants", "requests",
                          "sessions", "replicas", "fds", "threads", "extents"}) {
    EXPECT_EQ(status[key], expected++) << key;
  }
  ASSERT_EQ(status["spaces"].size(), 2u);
  EXPECT_EQ(status["spaces"][1]["space"], 1);
  EXPECT_EQ(status["spaces"][0]["fields"]["model"], "aspen-7b");
  EXPECT_EQ(status["spaces"][0]["pages"]["held"], 4000);
  EXPECT_EQ(status["counters"]["pages_bad"], 3);
  EXPECT_EQ(status["counters"]["frames_refused"], 8);
  EXPECT_EQ(status["reasons"]["frames_refused"]["too_long"], 4);
}

TEST_F(AdminTest, StatusForPeople) {
  const Ran ran = Ask({"status"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("grove, version 0.1.0, boot 00c0ffee12345678"));
  EXPECT_THAT(ran.out, HasSubstr("ready, up 2 min 5 s"));
  EXPECT_THAT(ran.out, HasSubstr("18 replicas, 17 sessions"));
  EXPECT_THAT(ran.out, HasSubstr("aspen-7b"));
  EXPECT_THAT(ran.out, HasSubstr("12,000"));
  EXPECT_THAT(ran.out, HasSubstr("pages_bad"));
  EXPECT_THAT(ran.out, HasSubstr("frames_refused, too_long"));
  EXPECT_THAT(ran.out, HasSubstr("19 fds, 20 threads"));
  admin_.status.clear_fds();
  EXPECT_THAT(Ask({"status"}).out, HasSubstr("unknown fds"));
  EXPECT_TRUE(AskJson({"status", "--json"})["fds"].is_null());
}

// As on a full disk: short output, long output, and help. A stream that can only be read stands in.
TEST_F(AdminTest, OutputThatCannotBeWrittenIsAFailure) {
  for (uint32_t run = 0; run < 2'000; ++run) AddRun(run, run, 0, 1);
  const auto shell = [&](const std::string& line) {
    return e2e::Run({"/bin/sh", "-c", PandoctlPath() + " --admin " + admin_.address() + line});
  };
  for (const std::string command : {" --help", " status", " status --json", " check", " tree"}) {
    const Ran ran = shell(command + " 1</dev/null");
    EXPECT_EQ(ran.exit, 1) << command;
    EXPECT_THAT(ran.err, HasSubstr("pandoctl: cannot write all of the output")) << command;
  }
  admin_.broken = "page 7";
  EXPECT_EQ(shell(" check 2</dev/null").exit, 1);
}

TEST_F(AdminTest, OptionsMayFollowTheCommand) {
  EXPECT_EQ(Pandoctl({"status", "--json", "--admin", admin_.address()}).exit, 0);
}

// FAULTS F3
TEST_F(AdminTest, StatsGivesTheAccount) {
  const json stats = AskJson({"stats", "--json"});
  EXPECT_EQ(stats["requests"], 2);
  EXPECT_EQ(stats["failed"], 10);
  const json tokens = {{"prompt", 420},  {"hit_engine", 20}, {"hit_device", 40}, {"hit_host", 60},
                       {"hit_disk", 80}, {"hit_peer", 100},  {"computed", 120}};
  EXPECT_EQ(stats["tokens"], tokens);
  EXPECT_EQ(stats["spaces"][0]["tokens"]["prompt"], 210);
  EXPECT_THAT(Ask({"stats"}).out, HasSubstr("71.43 %"));
}

// FAULTS F3
TEST_F(AdminTest, StatsFailsWhenTheAccountDoesNotBalance) {
  admin_.status.mutable_spaces(1)->mutable_account()->set_computed(59);
  const Ran space = Ask({"stats"});
  EXPECT_EQ(space.exit, 1);
  EXPECT_THAT(space.err, HasSubstr("space 1 does not balance: 210 prompt tokens, 150 hit + 59"));
  admin_.status = SomeStatus();
  FillAccount(3, admin_.status.mutable_account());
  EXPECT_THAT(Ask({"stats", "--json"}).err,
              HasSubstr("the spaces' prompt tokens sum to 420, the node's account has 630"));
}

TEST_F(AdminTest, TreeDrawsChildrenBelowTheirParents) {
  admin_.status.mutable_spaces()->RemoveLast();
  AddRun(5, 5, 0, 32);
  AddRun(6, 5, 32, 1400);
  AddRun(9, 6, 1432, 3);
  AddRun(7, 5, 32, 8);
  admin_.runs.mutable_runs(0)->set_children(2);
  admin_.runs.mutable_runs(3)->set_complete_blocks(2);
  admin_.runs.mutable_runs(3)->set_pins(1);
  admin_.runs.mutable_runs(3)->set_scope("tenant/a");
  admin_.runs.set_truncated(true);
  const Ran ran = Ask({"tree", "--limit", "50"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "runs of space 0\n"
            "└─ 0..32  32 blocks  2 children\n"
            "   ├─ 32..1432  1,400 blocks\n"
            "   │  └─ 1432..1435  3 blocks\n"
            "   └─ 32..40  8 blocks, 6 of them being written  1 pin  scope tenant/a\n"
            "... and more: --limit shows more runs\n");
  EXPECT_EQ(admin_.last_asked.limit(), 50u);
}

// What engines call things reaches tables escaped, and JSON as it is.
TEST_F(AdminTest, NamesOfEnginesCannotDriveTheTerminal) {
  const std::string model = "a\n    9  fake";
  admin_.status.mutable_spaces(0)->mutable_fields(0)->set_value(model);
  AddRun(5, 5, 0, 32);
  admin_.runs.mutable_runs(0)->set_scope("\x1b[31mred\n");
  EXPECT_THAT(Ask({"status"}).out, HasSubstr("a\\x0a    9  fake"));
  EXPECT_THAT(Ask({"tree"}).out, HasSubstr("scope \\x1b[31mred\\x0a\n"));
  EXPECT_EQ(AskJson({"status", "--json"})["spaces"][0]["fields"]["model"], model);
  EXPECT_EQ(AskJson({"tree", "--json"})["spaces"][0]["runs"][0]["scope"], "\x1b[31mred\n");
  admin_.broken = "space \x1b]0;x\a";
  EXPECT_THAT(Ask({"check"}).err, HasSubstr("found: space \\x1b]0;x\\x07"));
}

TEST_F(AdminTest, TreeOfOneSpaceAsJson) {
  AddRun(5, 5, 0, 32);
  const json tree = AskJson({"tree", "--space", "1", "--json"});
  ASSERT_EQ(tree["spaces"].size(), 1u);
  EXPECT_EQ(tree["spaces"][0]["space"], 1);
  EXPECT_EQ(tree["spaces"][0]["runs"][0]["blocks"], 32);
  EXPECT_EQ(tree["spaces"][0]["truncated"], false);
  EXPECT_EQ(admin_.last_asked.space(), 1u);
  const Ran none = Ask({"tree", "--space", "2"});
  EXPECT_EQ(none.exit, 1);
  EXPECT_THAT(none.err, HasSubstr("no space 2; it has 2 spaces, numbered from 0"));
}

TEST_F(AdminTest, DeepTreesAndUnknownParentsAreDrawn) {
  admin_.status.mutable_spaces()->RemoveLast();
  AddRun(0, 0, 0, 1);
  for (uint32_t run = 1; run < 50'000; ++run) AddRun(run, run - 1, run, 1);
  AddRun(60'000, 70'000, 3, 1);
  const Ran ran = Ask({"tree"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("49999..50000  1 block"));
  EXPECT_THAT(ran.out, HasSubstr("\n└─ 3..4  1 block"));
}

// FAULTS C2
TEST_F(AdminTest, CheckTellsWhatIsBroken) {
  const Ran fine = Ask({"check"});
  EXPECT_EQ(fine.exit, 0);
  EXPECT_THAT(fine.out, HasSubstr("all counts agree"));
  admin_.broken = "page 7: 2 holds, counted 1";
  const Ran broken = Ask({"check"});
  EXPECT_EQ(broken.exit, 1);
  EXPECT_THAT(broken.err, HasSubstr("page 7: 2 holds, counted 1"));
  EXPECT_EQ(Ask({"check", "--json"}).exit, 1);
}

// Told at once, not after the time that a node has to answer.
TEST_F(AdminTest, ReplayOnTheAdminSocketSaysSo) {
  const Ran ran =
      Pandoctl({"--timeout", "50", "replay", "--limit", "1", "--trace",
                PANDO_TEST_DATA "/conversation_trace.jsonl.gz", "--replicas", admin_.address()},
               40);
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err,
              HasSubstr("does not speak the engines' protocol: is that the admin socket?"));
}

TEST_F(AdminTest, ErrorsOfTheNodeAreSaid) {
  admin_.error = grpc::Status(grpc::StatusCode::INTERNAL, "the owner thread does not answer");
  const Ran ran = Ask({"status"});
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("says: the owner thread does not answer"));
}

// FAULTS D1: a node that is stopped costs the deadline, not for ever.
TEST(AdminDeadlineTest, ANodeThatDoesNotAnswerIsUnreachable) {
  std::string folder = std::filesystem::temp_directory_path() / "pando-admin-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/admin.sock";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  const Ran ran = Pandoctl({"--admin", "unix:" + path, "--timeout", "0.2", "status"});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("did not answer within 0.2 s"));
  EXPECT_THAT(ran.out, IsEmpty());
  close(listener);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pando::e2e
