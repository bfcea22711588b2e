#include "client/ctl/replay_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/ctl/printable.h"
#include "client/ctl/table.h"

namespace pando::ctl {
namespace {

using ::testing::HasSubstr;

Outcome SomeOutcome() {
  Outcome outcome;
  outcome.tokens = {.prompt = 100,
                    .hit_engine = 0,
                    .hit_device = 0,
                    .hit_host = 64,
                    .hit_peer = 0,
                    .computed = 36};
  outcome.pages = {.loaded = 5, .verified = 5, .wrong = 0, .bad = 1, .stored = 2};
  outcome.acquire_ns = 2000;
  outcome.load_ns = 10'000;
  return outcome;
}

ReplayResult SomeResult() {
  ReplayResult result;
  result.nodes.resize(2);
  result.Add(0, SomeOutcome(), 70);
  result.Add(1, SomeOutcome(), 80);
  return result;
}

// FAULTS F3: the sums agree.
TEST(ReplayResultTest, SumsUpOverRequestsAndNodes) {
  const ReplayResult result = SomeResult();
  EXPECT_EQ(result.Problem(), "");
  EXPECT_EQ(result.requests, 2u);
  EXPECT_EQ(result.tokens.prompt, 200u);
  EXPECT_EQ(result.tokens.hits(), 128u);
  EXPECT_EQ(result.nodes[1].tokens.prompt, 100u);
  EXPECT_DOUBLE_EQ(result.hit_rate(), 0.64);
  EXPECT_DOUBLE_EQ(result.ceiling_rate(), 0.75);
}

// FAULTS F3: what came from peers is part of what was hit, never more, and the sums agree.
TEST(ReplayResultTest, HitsAtPeersAreTheNodesToSay) {
  ReplayResult result = SomeResult();
  const PullTotals pull = {.pages = 3, .bytes = 300, .failed = 1, .declined = 2, .seconds = 0.5};
  result.AddCounts(1, {.boot_id = 7, .name = "b", .hit_peer = 48, .pulls = 2, .pull = pull});
  result.AddCounts(0, {.boot_id = 6, .name = "a", .hit_peer = 1000, .pulls = 0, .pull = pull});
  EXPECT_EQ(result.Problem(), "");
  EXPECT_EQ(result.tokens.hit_peer, 48u + 64u) << "not more than was verified";
  EXPECT_EQ(result.tokens.hit_host, 16u);
  EXPECT_EQ(result.tokens.hits(), 128u);
  EXPECT_EQ(result.nodes[1].tokens.hit_peer, 48u);
  EXPECT_EQ(result.nodes[1].tokens.hit_host, 16u);
  const nlohmann::json json = ToJson(result);
  EXPECT_EQ(json["pull"]["pages"], 6);
  EXPECT_EQ(json["pull"]["failed"], 2);
  EXPECT_EQ(json["pull"]["declined"], 4);
  EXPECT_EQ(json["pull"]["seconds"], 1.0);
  EXPECT_EQ(json["nodes"][1]["pull"]["bytes"], 300);
  EXPECT_EQ(json["nodes"][1]["name"], "b");
  EXPECT_THAT(ToText(result), HasSubstr("hit at a peer"));
}

TEST(ReplayResultTest, SaysWhichNodesFiguresAreNotKnown) {
  ReplayResult result = SomeResult();
  result.nodes[1].unwatched = "no node answers";
  EXPECT_EQ(ToJson(result)["nodes"][0]["watched"], true);
  EXPECT_EQ(ToJson(result)["nodes"][1]["watched"], false);
  EXPECT_THAT(ToText(result), HasSubstr("what it pulled from peers is not known"));
}

// A node that had blocks before the replay may hit more than one that started empty.
TEST(ReplayResultTest, SaysWhenTheCeilingDoesNotApply) {
  ReplayResult result = SomeResult();
  EXPECT_EQ(ToJson(result)["ceiling"]["applies"], true);
  EXPECT_THAT(ToText(result), HasSubstr("the ceiling is 75.00 %; wrong=0"));
  result.Add(0, SomeOutcome(), 48);
  EXPECT_EQ(result.warm_tokens, 16u);
  EXPECT_EQ(ToJson(result)["ceiling"]["applies"], false);
  EXPECT_THAT(ToText(result), HasSubstr("16 tokens of blocks that this replay had not stored"));
  EXPECT_THAT(ToText(result), HasSubstr("the node was warm: the ceiling of an empty one, 66.00 %, "
                                        "does not apply; wrong=0"));
}

// What was offered and could not be loaded tells a warm node too.
TEST(ReplayResultTest, FailedLoadsOfUnknownBlocksTellAWarmNode) {
  ReplayResult result = SomeResult();
  Outcome outcome;
  outcome.tokens.prompt = outcome.tokens.computed = outcome.failed_tokens = 32;
  result.Add(0, outcome, 16);
  EXPECT_FALSE(result.ceiling_applies());
}

TEST(ReplayResultTest, WrongBytesAreAProblem) {
  ReplayResult result = SomeResult();
  result.pages.wrong = 1;
  EXPECT_THAT(result.Problem(), HasSubstr("1 of 10 loaded pages held other bytes"));
  EXPECT_THAT(ToText(result), HasSubstr("WRONG: "));
}

TEST(ReplayResultTest, AnAccountThatDoesNotBalanceIsAProblem) {
  ReplayResult result = SomeResult();
  result.tokens.computed -= 1;
  EXPECT_THAT(result.Problem(), HasSubstr("200 prompt tokens, 128 hit + 71 computed"));
}

TEST(ReplayResultTest, JsonHasEveryKeyThatReadersRelyOn) {
  const nlohmann::json json = ToJson(SomeResult());
  for (const char* path : {"/requests",
                           "/tokens/prompt",
                           "/tokens/hit_engine",
                           "/tokens/hit_device",
                           "/tokens/hit_host",
                           "/tokens/hit_peer",
                           "/tokens/computed",
                           "/pages/loaded",
                           "/pages/stored",
                           "/pages/verified",
                           "/pages/wrong",
                           "/waits/tickets",
                           "/nodes/0/name",
                           "/nodes/0/boot_id",
                           "/nodes/0/watched",
                           "/nodes/0/pull/pages",
                           "/latency_us/await/p50",
                           "/pull/pages",
                           "/pull/bytes",
                           "/pull/seconds",
                           "/pull/failed",
                           "/pull/declined",
                           "/latency_us/acquire/p50",
                           "/latency_us/acquire/p99",
                           "/latency_us/load/p50",
                           "/latency_us/load/p99",
                           "/latency_us/pull/p50",
                           "/latency_us/pull/p99",
                           "/nodes/1/tokens/prompt",
                           "/nodes/0/requests",
                           "/nodes/0/socket",
                           "/ceiling/hit_tokens",
                           "/ceiling/hit_rate",
                           "/ceiling/applies",
                           "/hit_rate"}) {
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(path))) << path;
  }
  uint64_t sum = 0;
  for (const auto& [name, count] : json["tokens"].items()) {
    if (name != "prompt") sum += count.get<uint64_t>();
  }
  EXPECT_EQ(json["tokens"]["prompt"], sum) << "prompt is the sum of all others";
  EXPECT_DOUBLE_EQ(json["latency_us"]["load"]["p99"].get<double>(), 10.0);
}

TEST(ReplayResultTest, AnEmptyReplayHasNoRates) {
  const nlohmann::json json = ToJson({});
  EXPECT_EQ(json["hit_rate"], 0);
  EXPECT_EQ(json["latency_us"]["load"]["p50"], 0);
  EXPECT_THAT(ToText({}), HasSubstr("0 requests"));
}

TEST(PercentilesTest, AreTheNearestRank) {
  std::vector<int64_t> nanos;
  for (int64_t i = 200; i >= 1; --i) nanos.push_back(i * 1000);
  EXPECT_DOUBLE_EQ(PercentilesOf(nanos).p50, 100);
  EXPECT_DOUBLE_EQ(PercentilesOf(nanos).p99, 198);
  EXPECT_DOUBLE_EQ(PercentilesOf({7000}).p99, 7);
  EXPECT_DOUBLE_EQ(PercentilesOf({}).p50, 0);
}

TEST(TableTest, AlignsColumns) {
  Table table({"name", "n"}, {Table::kLeft, Table::kRight});
  table.Row({"a", "1"});
  table.Row({"└─ long", "1,000"});
  EXPECT_EQ(table.Text(),
            "name         n\n"
            "a            1\n"
            "└─ long  1,000\n");
}

// Names are chosen by engines: none of them can drive a terminal or make a row of its own.
TEST(TableTest, CellsCannotDriveTheTerminal) {
  Table table({}, {Table::kLeft, Table::kRight});
  table.Row({"a\x1b[31m\nroot  1", "1"});
  EXPECT_EQ(table.Text(), "a\\x1b[31m\\x0aroot  1  1\n");
}

TEST(PrintableTest, EscapesWhatDrivesTerminalsAndLeavesWords) {
  EXPECT_EQ(Printable("aspen-7b, café, 木 🌲"), "aspen-7b, café, 木 🌲");
  EXPECT_EQ(Printable(std::string("\0\r\x7f", 3)), "\\x00\\x0d\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b") << "a C1 control";
  EXPECT_EQ(Printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "right to left";
  for (const char* invalid : {"\xff", "\xc3", "\xc0\x8a", "\xe0\x80\x8a", "\xed\xa0\x80", "\x9b",
                              "\xf4\x90\x80\x80", "\xc3("}) {
    EXPECT_EQ(Printable(invalid).substr(0, 2), "\\x") << invalid;
  }
  EXPECT_EQ(PrintableLines("a\nb\t"), "a\nb\\x09");
}

TEST(TableTest, WritesNumbersForPeople) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1000), "1,000");
  EXPECT_EQ(Thousands(1234567), "1,234,567");
  EXPECT_EQ(Percent(1, 8), "12.50 %");
  EXPECT_EQ(Percent(0, 0), "-");
  EXPECT_EQ(Duration(59'999), "59 s");
  EXPECT_EQ(Duration(125'000), "2 min 5 s");
  EXPECT_EQ(Duration(7'260'000), "2 h 1 min");
}

}  // namespace
}  // namespace pando::ctl
