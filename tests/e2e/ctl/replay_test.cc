// pandoctl replay, and pandoctl's views, on real nodes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/ctl/engine_kv.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/page_bytes.h"
#include "client/ctl/prompt_tokens.h"
#include "client/ctl/trace.h"
#include "tests/e2e/ctl/program.h"
#include "tests/e2e/process/node_process.h"
#include "tests/paths.h"

namespace pando::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kTrace = PANDO_TEST_DATA "/conversation_trace.jsonl.gz";
constexpr uint32_t kBlockTokens = 64;
constexpr uint64_t kPageBytes = 4096;

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "pando-replay-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~ReplayTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Line(const std::string& sockets, std::vector<std::string> more) const {
    std::vector<std::string> line = {
        "replay",         "--trace",        kTrace,
        "--replicas",     sockets,          "--json",
        folder_ / "json", "--block-tokens", std::to_string(kBlockTokens)};
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  // Plays the trace and returns what it wrote, after checking what must hold for every replay.
  json Replay(const std::string& sockets, const std::vector<std::string>& more) {
    last_ = Pandoctl(Line(sockets, more), 120);
    EXPECT_EQ(last_.exit, 0) << last_.out << last_.err;
    return ReadResult();
  }
  json ReadResult() const {
    std::ifstream file(folder_ / "json");
    json result = json::parse(file, nullptr, false);
    EXPECT_TRUE(result.is_object());
    ExpectBalance(result);
    return result;
  }
  // FAULTS F3
  static void ExpectBalance(const json& result) {
    uint64_t sum = 0;
    for (const auto& [name, count] : result["tokens"].items()) {
      if (name != "prompt") sum += count.get<uint64_t>();
    }
    EXPECT_EQ(result["tokens"]["prompt"], sum);
    EXPECT_EQ(result["pages"]["loaded"], result["pages"]["verified"].get<uint64_t>() +
                                             result["pages"]["wrong"].get<uint64_t>());
    uint64_t of_nodes = 0;
    for (const json& node : result["nodes"]) of_nodes += node["tokens"]["prompt"].get<uint64_t>();
    EXPECT_EQ(result["tokens"]["prompt"], of_nodes);
  }
  static json Stats(const NodeProcess& node) {
    const Ran ran = Pandoctl({"--admin", node.admin(), "stats", "--json"});
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
  // FAULTS C1: after a replay nothing is claimed or held, and the node's recount agrees.
  static void ExpectAtRest(const NodeProcess& node) {
    EXPECT_EQ(node.WaitBase(Now() + 20 * kSecond), "");
    EXPECT_TRUE(node.SelfCheck());
  }

  std::filesystem::path folder_;
  Ran last_;
};

std::string Twice(const NodeProcess& node) {
  return node.socket() + "," + node.socket();
}

TEST_F(ReplayTest, TwoReplicasOfOneNodeHitAllThatAnInfiniteCacheWould) {
  NodeProcess node;
  const json result = Replay(Twice(node), {"--limit", "60"});
  EXPECT_EQ(result["requests"], 60);
  EXPECT_GT(result["tokens"]["hit_host"], 10'000);
  EXPECT_EQ(result["tokens"]["hit_host"], result["ceiling"]["hit_tokens"]);
  EXPECT_EQ(result["pages"]["wrong"], 0);
  EXPECT_EQ(result["pages"]["loaded"], result["tokens"]["hit_host"].get<uint64_t>() / kBlockTokens);
  EXPECT_GT(result["pages"]["stored"], 1000);
  EXPECT_GT(result["latency_us"]["acquire"]["p50"], 0);
  EXPECT_THAT(last_.out, HasSubstr("wrong=0"));
  ASSERT_EQ(result["nodes"].size(), 1u);
  EXPECT_EQ(result["nodes"][0]["replicas"], 2);

  const json stats = Stats(node);
  EXPECT_EQ(stats["requests"], 60);
  for (const char* name : {"prompt", "hit_host", "computed"}) {
    EXPECT_EQ(stats["tokens"][name], result["tokens"][name]) << name;
  }
  EXPECT_EQ(stats["failed"], 0);
  ExpectAtRest(node);
}

// FAULTS F3: what a node says of itself is counted once, whatever its socket is called.
TEST_F(ReplayTest, ASocketOfTwoNamesIsOneNode) {
  NodeProcess node;
  std::filesystem::create_symlink(node.socket(), folder_ / "link");
  const json result = Replay(node.socket() + "," + (folder_ / "link").string(), {"--limit", "5"});
  ASSERT_EQ(result["nodes"].size(), 1u);
  EXPECT_EQ(result["nodes"][0]["replicas"], 2);
}

// FAULTS B5
TEST_F(ReplayTest, WithSeveralShardsAndOddPageSizes) {
  NodeProcess node;
  const json result = Replay(Twice(node), {"--limit", "15", "--shards", "3", "--page-bytes", "1001",
                                           "--routing", "random", "--prefill-rate", "20000"});
  EXPECT_EQ(result["tokens"]["hit_host"], result["ceiling"]["hit_tokens"]);
  EXPECT_GT(result["tokens"]["hit_host"], 0);
  EXPECT_EQ(result["pages"]["loaded"],
            3 * result["tokens"]["hit_host"].get<uint64_t>() / kBlockTokens);
  EXPECT_EQ(node.Status()["spaces"][0]["shards"], 3);
  ExpectAtRest(node);
}

// FAULTS A4, A5: what was stored under another seed, block size or page size is never loaded.
TEST_F(ReplayTest, OtherContentsNeverMeet) {
  NodeProcess node({}, "256MiB");
  EXPECT_GT(Replay(node.socket(), {"--limit", "5"})["pages"]["stored"], 0);
  const json again = Replay(node.socket(), {"--limit", "5"});
  EXPECT_GT(again["tokens"]["hit_host"], again["ceiling"]["hit_tokens"]) << "it is all there";
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--seed", "7"}, {"--page-bytes", "2048"}}) {
    std::vector<std::string> line = {"--limit", "5"};
    line.insert(line.end(), other.begin(), other.end());
    const json result = Replay(node.socket(), line);
    EXPECT_EQ(result["tokens"]["hit_host"], result["ceiling"]["hit_tokens"]) << other[0];
  }
  ExpectAtRest(node);
}

TEST_F(ReplayTest, NodesThatShareNothingHitLessThanTheCeiling) {
  NodeProcess a, b;
  const json result = Replay(a.socket() + "," + b.socket(), {"--limit", "40"});
  ASSERT_EQ(result["nodes"].size(), 2u);
  EXPECT_EQ(result["nodes"][0]["requests"], 20);
  EXPECT_EQ(result["nodes"][1]["socket"], "unix:" + b.socket());
  EXPECT_LT(result["tokens"]["hit_host"], result["ceiling"]["hit_tokens"]);
  EXPECT_EQ(Stats(b)["tokens"]["prompt"], result["nodes"][1]["tokens"]["prompt"]);
}

// FAULTS C7, C8: a slab that is too small costs hits, nothing else.
TEST_F(ReplayTest, ASmallSlabEvictsAndRefusesWhatCannotFit) {
  NodeProcess node({}, "64MiB");
  const json result = Replay(Twice(node), {"--limit", "12", "--page-bytes", "256KiB"});
  EXPECT_GT(result["not_stored"], 0);
  EXPECT_THAT(last_.out, HasSubstr("found no room for their blocks"));
  EXPECT_GT(node.Status()["spaces"][0]["evicted_blocks"], 0);
  EXPECT_EQ(result["pages"]["wrong"], 0);
  ExpectAtRest(node);
}

// The third block of the trace's first request, which later requests share.
std::vector<uint64_t> FirstChain() {
  const auto trace = ctl::ReadTrace(kTrace, 1);
  std::vector<uint32_t> tokens;
  ctl::MakeTokens(trace->front(), 0, 0, &tokens);
  return ctl::BlockChain(tokens, kBlockTokens);
}

// Flips one bit of the page that holds `chain`'s bytes, in the node's own memory. True if found.
bool CorruptPage(pid_t node, uint64_t chain) {
  std::vector<std::byte> wanted(kPageBytes), page(kPageBytes);
  ctl::EngineKv kv(kPageBytes);
  kv.Compute(0, ctl::PageBytes(chain, 0));
  auto out = wanted.begin();
  for (const auto piece : kv.pieces(0)) out = std::copy(piece.begin(), piece.end(), out);
  const std::string fds = "/proc/" + std::to_string(node) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(fds)) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry, ignored).string().find("memfd:") == std::string::npos)
      continue;
    const int fd = open(entry.path().c_str(), O_RDWR);
    struct stat facts {};
    const off_t size = fstat(fd, &facts) == 0 ? facts.st_size : 0;
    for (off_t at = 0; at < size; at += 4096) {
      if (pread(fd, page.data(), page.size(), at) != static_cast<ssize_t>(page.size())) break;
      if (page != wanted) continue;
      page[2000] ^= std::byte{4};
      const bool written = pwrite(fd, &page[2000], 1, at + 2000) == 1;
      close(fd);
      return written;
    }
    close(fd);
  }
  return false;
}

// FAULTS B6, F6, G4: a flipped bit is found by the checksum, never counted as a hit, dropped with
// all below it, stored again and hit again.
TEST_F(ReplayTest, ACorruptedPageIsDroppedCountedAndHealed) {
  NodeProcess node;
  const json first = Replay(node.socket(), {"--limit", "12"});
  ASSERT_TRUE(CorruptPage(node.child().pid(), FirstChain()[2]));
  const json second = Replay(node.socket(), {"--limit", "12"});
  EXPECT_EQ(first["ceiling"]["applies"], true);
  EXPECT_EQ(second["ceiling"]["applies"], false) << "the node was warm";
  EXPECT_EQ(second["pages"]["bad"], 1);
  EXPECT_EQ(second["pages"]["wrong"], 0);
  EXPECT_GT(second["failed_tokens"], 0);
  EXPECT_GT(second["pages"]["stored"], 0) << "what was dropped is stored again";
  EXPECT_THAT(last_.out, HasSubstr("refused by checksum"));
  EXPECT_EQ(node.Status()["counters"]["pages_bad"], 1);
  EXPECT_GT(node.Status()["spaces"][0]["dropped_blocks"], 0);
  const json stats = Stats(node);
  EXPECT_EQ(stats["failed"], second["failed_tokens"]);
  EXPECT_EQ(stats["tokens"]["hit_host"], first["tokens"]["hit_host"].get<uint64_t>() +
                                             second["tokens"]["hit_host"].get<uint64_t>());
  const json third = Replay(node.socket(), {"--limit", "12"});
  EXPECT_EQ(third["pages"]["bad"], 0);
  EXPECT_EQ(third["pages"]["stored"], 0) << "all is there again";
  EXPECT_GT(third["tokens"]["hit_host"], second["tokens"]["hit_host"]);
  ExpectAtRest(node);
}

// Stores rubbish, with a right checksum, as the first blocks of the trace's first prompt.
void StoreRubbish(const std::string& socket) {
  client::Options options;
  options.socket = socket;
  options.replica_key = "liar";
  options.block_tokens = kBlockTokens;
  options.page_bytes = kPageBytes;
  options.fields = {{"model", "pando-stand-in/seed-0"},
                    {"layout", "splitmix64 of the token prefix, version 1"}};
  const auto liar = client::Client::Create(options);
  const int64_t deadline = client::NowNanos() + 10 * kSecond;
  ASSERT_TRUE(liar->WaitAttached(deadline)) << liar->last_error();
  const auto trace = ctl::ReadTrace(kTrace, 1);
  std::vector<uint32_t> tokens;
  ctl::MakeTokens(trace->front(), 0, 0, &tokens);
  auto reserve = liar->StartReserve(0, {.tokens = tokens, .segments = {}, .extras = {}}, {}, 0, 4,
                                    deadline, deadline);
  const client::Claim claim = liar->Wait(reserve).claim;
  ASSERT_TRUE(claim);
  auto begin = liar->StartBegin({&claim, 1}, deadline);
  client::BeginResult& began = liar->Wait(begin);
  ASSERT_EQ(began.code, client::Code::kOk) << began.message;
  client::Hold hold = std::move(began.holds[0]);
  const std::vector<std::byte> rubbish(kPageBytes, std::byte{0x5a});
  const std::span<const std::byte> piece(rubbish);
  for (uint32_t i = 0; i < hold.pages(); ++i) EXPECT_TRUE(hold.Store(i, {&piece, 1}));
  auto end = liar->StartEnd(std::move(hold), deadline);
  EXPECT_EQ(liar->Wait(end).code, client::Code::kOk);
}

// The proof itself: bytes that are not the prompt's are found although every checksum is right.
TEST_F(ReplayTest, WrongBytesFailTheReplayAndAreNoHit) {
  NodeProcess node;
  StoreRubbish(node.socket());
  const Ran ran = Pandoctl(Line(node.socket(), {"--limit", "1"}));
  EXPECT_EQ(ran.exit, 1) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("WRONG: 4 of 4 loaded pages held other bytes"));
  const json result = ReadResult();
  EXPECT_EQ(result["pages"]["wrong"], 4);
  EXPECT_EQ(result["tokens"]["hit_host"], 0);
}

// Waits until the node has settled so many requests.
bool WaitSettled(const NodeProcess& node, uint64_t count) {
  const int64_t deadline = Now() + 60 * kSecond;
  while (Now() < deadline) {
    const json status = node.Status();
    if (status.is_object() && status["counters"].value("settles", 0ull) >= count) return true;
    poll(nullptr, 0, 5);
  }
  return false;
}

// FAULTS D1, C4: a dead node makes misses, and the replay says so.
TEST_F(ReplayTest, GoesOnWithMissesWhenTheNodeDies) {
  NodeProcess node({}, "64MiB");
  std::vector<std::string> line = Line(Twice(node), {"--limit", "1000", "--timeout", "1"});
  line.insert(line.begin(), PandoctlPath());
  Program replay(line);
  ASSERT_TRUE(WaitSettled(node, 5));
  node.child().Signal(SIGKILL);
  const Ran ran = replay.Wait(120);
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("no answer for"));
  const json result = ReadResult();
  EXPECT_EQ(result["requests"], 1000);
  EXPECT_GT(result["unreached"], 0);
  EXPECT_EQ(result["pages"]["wrong"], 0);
}

// FAULTS D2: only what was under way is lost when the node is started anew, in all sessions.
TEST_F(ReplayTest, ComesBackToANodeThatWasStartedAnew) {
  NodeProcess node;
  std::vector<std::string> line =
      Line(node.socket(), {"--limit", "300", "--shards", "2", "--timeout", "60"});
  line.insert(line.begin(), PandoctlPath());
  Program replay(line);
  ASSERT_TRUE(WaitSettled(node, 5));
  node.child().Signal(SIGKILL);
  ASSERT_TRUE(node.Restart());
  const Ran ran = replay.Wait(120);
  EXPECT_TRUE(ran.exit == 3 || ran.exit == 0) << ran.exit << ran.out << ran.err;
  const json result = ReadResult();
  EXPECT_EQ(result["requests"], 300);
  EXPECT_LE(result["unreached"], 2) << ran.out;
  EXPECT_EQ(result["refused"], 0) << ran.out;
  EXPECT_EQ(result["pages"]["wrong"], 0);
  EXPECT_GE(Stats(node)["requests"], 200);
  EXPECT_EQ(node.Status()["counters"]["requests_refused"], 0)
      << "the new life was asked for what the old one had";
  ExpectAtRest(node);
}

// FAULTS D1
TEST_F(ReplayTest, CtrlCEndsItAlsoWhileTheNodeIsSilent) {
  NodeProcess node({}, "64MiB");
  std::vector<std::string> line = Line(node.socket(), {"--timeout", "600"});
  line.insert(line.begin(), PandoctlPath());
  Program replay(line);
  ASSERT_TRUE(WaitSettled(node, 5));
  node.child().Signal(SIGSTOP);
  kill(replay.pid(), SIGINT);
  const Ran ran = replay.Wait(60);
  node.child().Signal(SIGCONT);
  EXPECT_EQ(ran.exit, 130) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("interrupted after"));
}

TEST_F(ReplayTest, CtrlCEndsWithWhatWasDone) {
  NodeProcess node({}, "64MiB");
  std::vector<std::string> line = Line(Twice(node), {});
  line.insert(line.begin(), PandoctlPath());
  Program replay(line);
  ASSERT_TRUE(WaitSettled(node, 5));
  kill(replay.pid(), SIGINT);
  const Ran ran = replay.Wait(60);
  EXPECT_EQ(ran.exit, 130) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("interrupted after"));
  const json result = ReadResult();
  EXPECT_TRUE(result["interrupted"]);
  EXPECT_EQ(Stats(node)["requests"], result["requests"]);
  ExpectAtRest(node);
}

TEST_F(ReplayTest, ViewsOfARealNode) {
  NodeProcess node;
  const Ran fresh = Pandoctl({"--admin", node.admin(), "tree"});
  EXPECT_EQ(fresh.exit, 0);
  EXPECT_THAT(fresh.out, HasSubstr("no space yet"));
  Replay(node.socket(), {"--limit", "10"});
  const Ran tree = Pandoctl({"--admin", node.admin(), "tree", "--json"});
  EXPECT_EQ(tree.exit, 0) << tree.err;
  uint64_t blocks = 0;
  const json spaces = json::parse(tree.out, nullptr, false)["spaces"];
  for (const json& run : spaces[0]["runs"]) blocks += run["blocks"].get<uint64_t>();
  const json status = node.Status();
  EXPECT_EQ(status["spaces"][0]["blocks"], blocks);
  EXPECT_EQ(status["pages"]["committed"], blocks);
  EXPECT_EQ(status["boot_id"].get<std::string>().size(), 16u);
  EXPECT_THAT(Pandoctl({"--admin", node.admin(), "tree"}).out, HasSubstr("└─ 0..8  8 blocks"));
  EXPECT_THAT(Pandoctl({"--admin", node.admin(), "status"}).out,
              HasSubstr("pando-stand-in/seed-0"));
  EXPECT_THAT(Pandoctl({"--admin", node.admin(), "stats"}).out, HasSubstr("space 0"));
  EXPECT_EQ(Pandoctl({"--admin", node.admin(), "check"}).exit, 0);
}

// A Ctrl-C that comes when all is done, and before it is printed.
TEST(InterruptTest, ASignalThatNobodyAskedForEndsNothing) {
  {
    ctl::Interrupt interrupt;
    raise(SIGINT);
  }
  SUCCEED() << "this process goes on";
}

// What README shows to those who write a connector.
TEST_F(ReplayTest, TheExampleEngineStoresAndThenLoads) {
  NodeProcess node;
  const std::vector<std::string> line = {PANDO_BIN_DIR "/example_engine", node.socket()};
  EXPECT_EQ(e2e::Run(line).out, "computed 6 blocks, loaded 0\n");
  EXPECT_EQ(e2e::Run(line).out, "computed 0 blocks, loaded 6\n");
  EXPECT_EQ(Stats(node)["tokens"]["hit_host"], 6 * 16);
  ExpectAtRest(node);
}

}  // namespace
}  // namespace pando::e2e
