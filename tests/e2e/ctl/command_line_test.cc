// What people get who type something wrong, or ask a node that is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/ctl/program.h"
#include "tests/paths.h"

namespace pando::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTrace = PANDO_TEST_DATA "/conversation_trace.jsonl.gz";

TEST(CommandLineTest, HelpShowsExamplesAndExitStatuses) {
  const Ran help = Pandoctl({"--help"});
  EXPECT_EQ(help.exit, 0);
  EXPECT_THAT(help.out, HasSubstr("pandoctl --admin unix:/run/pando/admin.sock status"));
  EXPECT_THAT(help.out, HasSubstr("3 no node answers"));
  for (const char* command : {"status", "stats", "peers", "tree", "check", "replay"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    EXPECT_EQ(Pandoctl({command, "--help"}).exit, 0) << command;
  }
  EXPECT_THAT(Pandoctl({"replay", "--help"}).out, HasSubstr("two replicas that share one node"));
}

struct WrongLine {
  std::vector<std::string> arguments;
  std::string error;
};

// FAULTS G5: refused before anything is done, naming the option and what is allowed.
TEST(CommandLineTest, RefusesWrongLines) {
  const std::vector<std::string> replay = {"replay", "--trace", kTrace, "--replicas", "unix:/none"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), replay.begin(), replay.end());
    return more;
  };
  const std::string long_path = "unix:/" + std::string(107, 'x');
  const std::vector<WrongLine> lines = {
      {{}, "A command (status, stats, peers, tree, check or replay) is required"},
      {{"explode"}, "explode"},
      {{"status"}, "--admin unix:PATH"},
      {{"status", "--admin", "unix:"}, "an empty path"},
      {{"status", "--admin", long_path}, "the path has 108 bytes, a Unix socket's may have 107"},
      {{"status", "--admin", "unix:/none", "--timeout", "0"}, "--timeout"},
      {{"status", "--admin", "unix:/none", "--frobnicate"}, "--frobnicate"},
      {{"tree", "--admin", "unix:/none", "--limit", "0"}, "--limit"},
      {{"tree", "--admin", "unix:/none", "--limit", "100001"}, "--limit"},
      {{"replay", "--trace", kTrace}, "--replicas is required"},
      {{"replay", "--replicas", "unix:/none"}, "--trace is required"},
      {with({"--page-bytes", "9MiB"}), "expected a size from 1 B to 8.0 MiB"},
      {with({"--page-bytes", "many"}), "found 'many'"},
      {with({"--block-tokens", "0"}), "--block-tokens"},
      {with({"--block-tokens", "4097"}), "--block-tokens"},
      {with({"--shards", "65"}), "--shards"},
      {with({"--routing", "best"}), "round-robin"},
      {with({"--limit", "0"}), "--limit"},
      {with({"--limit", "-5"}), "--limit"},
      {with({"--limit", "0"}), "found '0', expected a whole number from 1\n"},
      {with({"--limit", "010"}), "found '010', expected a whole number from 1\n"},
      {with({"--seed", "x"}), "--seed"},
      {with({"--seed", "-1"}), "found '-1', expected a whole number from 0"},
      {with({"--seed", "18446744073709551616"}), "--seed"},
      {with({"--prefill-rate", "-1"}), "--prefill-rate"},
      {with({"--prefill-speedup", "-1"}), "--prefill-speedup"},
      {with({"--await-ms", "600001"}), "expected a whole number from 0 to 600000"},
      {with({"--admins", ","}), "--admins: an empty path"},
      {with({"--admins", "unix:/a,unix:/b"}), "found 2 sockets, expected one for each of the 1"},
      {{"peers", "--admin", "unix:/none", "--wait", "x"}, "--wait"},
      {with({"--timeout", "nan"}), "expected seconds from 0.01 to 3600"},
      {{"tree", "--admin", "unix:/none", "--space", "-1"}, "--space"},
      {{"replay", "--replicas", ",", "--trace", kTrace}, "--replicas: an empty path"},
      {{"replay", "--replicas", "", "--trace", kTrace}, "--replicas: an empty path"},
      {{"replay", "--replicas", "unix:/none,", "--trace", kTrace}, "--replicas: an empty path"},
      {{"replay", "--trace", kTrace, "--replicas", "unix:/none,unix:"}, "an empty path"},
  };
  for (const WrongLine& line : lines) {
    const Ran ran = Pandoctl(line.arguments);
    EXPECT_EQ(ran.exit, 2) << line.error;
    EXPECT_THAT(ran.out + ran.err, HasSubstr(line.error));
  }
}

TEST(CommandLineTest, SaysWhereNoNodeAnswers) {
  for (const char* command : {"status", "stats", "peers", "tree", "check"}) {
    const Ran ran = Pandoctl({"--admin", "unix:/nowhere/admin.sock", command});
    EXPECT_EQ(ran.exit, 3) << command;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr("no node answers at /nowhere/admin.sock"));
    EXPECT_THAT(ran.err, HasSubstr("--admin"));
  }
}

TEST(CommandLineTest, ReplaySaysWhereNoNodeAnswers) {
  const Ran ran = Pandoctl({"--timeout", "0.2", "replay", "--trace", kTrace, "--limit", "1",
                            "--replicas", "unix:/nowhere/node.sock"});
  EXPECT_EQ(ran.exit, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("no node takes sessions at unix:/nowhere/node.sock"));
}

TEST(CommandLineTest, ReplaySaysWhatIsWrongWithTheTrace) {
  std::string pattern = std::filesystem::temp_directory_path() / "pando-trace-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  std::ofstream(pattern + "/bad.jsonl") << "{\"timestamp\": 1}\n";
  const Ran bad =
      Pandoctl({"replay", "--trace", pattern + "/bad.jsonl", "--replicas", "unix:/none"});
  EXPECT_EQ(bad.exit, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.jsonl:1: the field 'input_length' is missing"));
  const Ran none = Pandoctl({"replay", "--trace", pattern + "/none", "--replicas", "unix:/none"});
  EXPECT_EQ(none.exit, 1);
  EXPECT_THAT(none.err, HasSubstr("cannot open the trace"));
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace pando::e2e
