// Who may attach, as what, and which replicas share pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "node/core/spaces.h"
#include "tests/node/core/driver.h"

namespace pando::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

AttachRequest Plain() {
  return CoreDriver::AttachAs("a", Role::kBoth, 0);
}

std::string Field(const LogLine& line, std::string_view name) {
  for (const auto& [key, value] : line.fields) {
    if (key == name) return value;
  }
  return "(absent)";
}

// FAULTS A7, D8
TEST(AttachTest, RefusesAnotherProtocolOrFormulaByName) {
  CoreDriver node;
  const SessionId session = node.Open();
  AttachRequest newer = Plain();
  newer.protocol_min = newer.protocol_max = limits::kProtocolVersion + 1;
  const Answer version = node.Send(session, newer);
  EXPECT_EQ(version.code, Code::kInvalid);
  EXPECT_THAT(version.message, AllOf(HasSubstr("protocol"), HasSubstr("speaks 0")));

  AttachRequest other_sum = Plain();
  other_sum.checksum_formula = 2;
  const Answer formula = node.Send(session, other_sum);
  EXPECT_EQ(formula.code, Code::kInvalid);
  EXPECT_THAT(formula.message, AllOf(HasSubstr("checksum formula 2"), HasSubstr("uses 1")));

  AttachRequest range = Plain();
  range.protocol_max = 7;
  EXPECT_EQ(node.Send(session, range).code, Code::kOk);
  EXPECT_EQ(node.status().counters.attach_refused.total(), 2u);
}

// FAULTS G1
TEST(AttachTest, RefusesWhatIsImpossible) {
  struct Case {
    std::string says;
    void (*spoil)(AttachRequest*);
  };
  const Case cases[] = {
      {"pidfd", [](AttachRequest* a) { a->has_pidfd = false; }},
      {"credential", [](AttachRequest* a) { a->credential = "token"; }},
      {"replica key", [](AttachRequest* a) { a->replica_key.clear(); }},
      {"at most 256", [](AttachRequest* a) { a->replica_key.assign(257, 'k'); }},
      {"world_size 0", [](AttachRequest* a) { a->world_size = 0; }},
      {"1 to 64", [](AttachRequest* a) { a->world_size = 65; }},
      {"role both with world_size 2", [](AttachRequest* a) { a->world_size = 2; }},
      {"shard 1", [](AttachRequest* a) { a->shard = ShardId(1); }},
      {"at most 4096", [](AttachRequest* a) { a->block_tokens = 4097; }},
      {"at most 8388608", [](AttachRequest* a) { a->page_bytes = Bytes((8u << 20) + 1); }},
      {"without a name",
       [](AttachRequest* a) {
         a->fields = {{"", "x"}};
       }},
      {"found twice",
       [](AttachRequest* a) {
         a->fields = {{"x", "1"}, {"x", "1"}};
       }},
      {"in field \"x\"",
       [](AttachRequest* a) {
         a->fields = {{"x", std::string(4096, 'v')}};
       }},
      {"at most 128",
       [](AttachRequest* a) {
         a->fields.clear();
         for (int i = 0; i < 129; ++i) a->fields.emplace_back("f" + std::to_string(i), "v");
       }},
  };
  CoreDriver node;
  const SessionId session = node.Open();
  for (const Case& c : cases) {
    AttachRequest attach = Plain();
    c.spoil(&attach);
    const Answer answer = node.Send(session, attach);
    EXPECT_TRUE(answer.code == Code::kInvalid || answer.code == Code::kLimit) << c.says;
    EXPECT_THAT(answer.message, HasSubstr(c.says));
  }
  EXPECT_EQ(node.status().replicas, 0u);
  EXPECT_EQ(node.Send(session, Plain()).code, Code::kOk) << "a refusal leaves nothing behind";
}

// Whatever a caller sent, what it gets back is UTF-8.
TEST(AttachTest, QuotesNamesInWholeCharacters) {
  CoreDriver node;
  AttachRequest attach = Plain();
  std::string name(63, 'x');
  name += "\u00e4\u00f6";  // the 64th byte is half of a character
  attach.fields = {{name, std::string(4096, 'v')}};
  EXPECT_THAT(node.Send(node.Open(), attach).message,
              HasSubstr("in field \"" + std::string(63, 'x') + "...\": "));
  const std::string odd =
      "a\n\xff\xc3"
      "b\u20ac\xed\xa0\x80";
  attach.fields = {{odd, "1"}, {odd, "1"}};
  EXPECT_THAT(node.Send(node.Open(), attach).message,
              HasSubstr("field \"a???b\u20ac???\" found twice"));
}

TEST(AttachTest, ComesFirstAndOnce) {
  CoreDriver node;
  const SessionId session = node.Open();
  const Answer early = node.Send(session, ProbeRequest{BlocksPrompt(1, 1)});
  EXPECT_EQ(early.code, Code::kInvalid);
  EXPECT_THAT(early.message, HasSubstr("attach first"));
  EXPECT_EQ(node.Send(session, Plain()).code, Code::kOk);
  const Answer second = node.Send(session, Plain());
  EXPECT_EQ(second.code, Code::kInvalid);
  EXPECT_THAT(second.message, HasSubstr("second attach"));
  EXPECT_EQ(node.Send(SessionId(77), Plain()).code, Code::kInvalid);
  node.ExpectBase();
}

TEST(AttachTest, SessionsOfAReplicaJoinInAnyOrderAndEachKnowsAPart) {
  CoreDriver node;
  EngineOptions options;
  options.shards = 2;
  AttachRequest scheduler = CoreDriver::AttachAs("r", Role::kScheduler, 0, options);
  scheduler.page_bytes = Bytes();
  scheduler.fields = {{"model", "m"}};
  AttachRequest worker = CoreDriver::AttachAs("r", Role::kWorker, 1, options);
  worker.block_tokens = 0;
  worker.fields = {{"dtype", "fp8"}};
  const SessionId w1 = node.Open(), s = node.Open(), w0 = node.Open();
  EXPECT_EQ(node.Send(w1, worker).code, Code::kOk);
  EXPECT_EQ(node.Send(s, scheduler).code, Code::kOk);
  const Answer early = node.Send(s, ProbeRequest{BlocksPrompt(1, 1)});
  EXPECT_EQ(early.code, Code::kUnavailable);
  EXPECT_THAT(early.message, HasSubstr("worker 0 has not attached"));
  worker.shard = ShardId(0);
  EXPECT_EQ(node.Send(w0, worker).code, Code::kOk);
  EXPECT_EQ(node.Send(s, ProbeRequest{BlocksPrompt(1, 1)}).code, Code::kOk);

  const CoreStatus status = node.status();
  ASSERT_EQ(status.spaces.size(), 1u);
  EXPECT_EQ(status.spaces[0].shape.shards, 2u);
  EXPECT_EQ(status.spaces[0].shape.block_tokens, kBlock);
  EXPECT_EQ(status.spaces[0].shape.page_bytes, Bytes(4096));
  EXPECT_THAT(status.spaces[0].fields,
              ::testing::ElementsAre(std::pair("dtype", "fp8"), std::pair("model", "m")));
  EXPECT_EQ(node.steps["replica.complete"], 1u);
}

// FAULTS A4
TEST(AttachTest, RefusesSessionsOfAReplicaThatContradictEachOther) {
  struct Case {
    std::vector<std::string> says;
    void (*spoil)(AttachRequest*);
  };
  const Case cases[] = {
      {{"dtype", "fp8", "bf16"},
       [](AttachRequest* a) {
         a->fields = {{"dtype", "fp8"}};
       }},
      {{"world_size", "3", "2"}, [](AttachRequest* a) { a->world_size = 3; }},
      {{"block_tokens", "32", "16"}, [](AttachRequest* a) { a->block_tokens = 32; }},
      {{"page_bytes", "8192", "4096"}, [](AttachRequest* a) { a->page_bytes = Bytes(8192); }},
  };
  CoreDriver node;
  EngineOptions options;
  options.shards = 2;
  EXPECT_EQ(node.Send(node.Open(), CoreDriver::AttachAs("r", Role::kScheduler, 0, options)).code,
            Code::kOk);
  const SessionId worker = node.Open();
  for (const Case& c : cases) {
    AttachRequest attach = CoreDriver::AttachAs("r", Role::kWorker, 1, options);
    c.spoil(&attach);
    const Answer answer = node.Send(worker, attach);
    EXPECT_EQ(answer.code, Code::kInvalid);
    for (const std::string& text : c.says) EXPECT_THAT(answer.message, HasSubstr(text));
  }
}

TEST(AttachTest, RolesOfAReplicaDoNotMix) {
  CoreDriver node;
  EXPECT_EQ(node.Send(node.Open(), CoreDriver::AttachAs("r", Role::kScheduler, 0)).code, Code::kOk);
  const Answer both = node.Send(node.Open(), CoreDriver::AttachAs("r", Role::kBoth, 0));
  EXPECT_EQ(both.code, Code::kInvalid);
  EXPECT_THAT(both.message, AllOf(HasSubstr("role both"), HasSubstr("scheduler and workers")));
  node.StartEngine("s");
  const Answer worker = node.Send(node.Open(), CoreDriver::AttachAs("s", Role::kWorker, 0));
  EXPECT_EQ(worker.code, Code::kInvalid);
  EXPECT_THAT(worker.message, HasSubstr("one session of role both"));
}

// FAULTS A4, A5
TEST(AttachTest, AnyDifferingFieldIsAnotherSpaceAndIsNamedInTheLog) {
  CoreDriver node({.extents = 8});
  EngineOptions options;
  options.fields = {{"model", "m"}, {"weights", "v1"}};
  const Engine old = node.StartEngine("old", options);
  EXPECT_EQ(node.Store(old, BlocksPrompt(1, 4)), 4u);
  options.fields = {{"weights", "v2"}, {"model", "m"}};
  const Engine updated = node.StartEngine("new", options);
  EXPECT_EQ(node.Probe(updated, BlocksPrompt(1, 4)).blocks, 0u) << "new weights, no old page";
  ASSERT_EQ(node.Logged("space.differs").size(), 1u);
  const LogLine line = node.Logged("space.differs")[0];
  EXPECT_EQ(Field(line, "model"), "m");
  EXPECT_EQ(Field(line, "field"), "weights");
  EXPECT_EQ(Field(line, "value"), "v2");
  EXPECT_EQ(Field(line, "other_value"), "v1");

  options.fields = {{"model", "m"}, {"weights", "v1"}};
  const Engine same = node.StartEngine("same", options);
  EXPECT_EQ(node.Probe(same, BlocksPrompt(1, 4)).blocks, 4u) << "equal fields, shared pages";
  options.page_bytes = Bytes(8192);
  const Engine paged = node.StartEngine("paged", options);
  EXPECT_EQ(node.Probe(paged, BlocksPrompt(1, 4)).blocks, 0u);
  EXPECT_EQ(node.status().spaces.size(), 3u);
  node.ExpectBase();
}

// FAULTS A3
TEST(AttachTest, ShiftedBordersOfFieldsAreOtherSpaces) {
  CoreDriver node;
  const std::vector<std::vector<std::pair<std::string, std::string>>> lists = {
      {{"ab", "c"}}, {{"a", "bc"}}, {{"a", "b"}, {"c", ""}}, {{"a", ""}, {"bc", ""}}, {}};
  int i = 0;
  for (const auto& fields : lists) {
    EngineOptions options;
    options.fields = fields;
    node.StartEngine("r" + std::to_string(i++), options);
  }
  EXPECT_EQ(node.status().spaces.size(), lists.size());
}

// FAULTS A3: a value that spells out what a further field adds to the identity is no such field.
TEST(AttachTest, AValueThatLooksLikeAFieldIsAValue) {
  SpaceDescription one, two, forged;
  one.fields = {{"a", "b"}};
  two.fields = {{"a", "b"}, {"c", "d"}};
  const std::string shorter = SpaceIdentity(one), longer = SpaceIdentity(two);
  const auto differs = std::ranges::mismatch(shorter, longer).in2 - longer.begin();
  const auto added = longer.substr(static_cast<size_t>(differs), longer.size() - shorter.size());
  forged.fields = {{"a", "b" + added}};
  EXPECT_NE(SpaceIdentity(forged), longer);
}

TEST(AttachTest, APlaceThatStillHoldsPagesIsTakenOnlyByNamingItsSession) {
  CoreDriver node;
  const Engine engine = node.StartEngine("r");
  const ReserveAnswer reserved = node.Reserve(engine, BlocksPrompt(1, 3));
  node.Begin(engine.scheduler, reserved.claim);
  const SessionId second = node.Open();
  const Answer twice = node.Send(second, CoreDriver::AttachAs("r", Role::kBoth, 0));
  EXPECT_EQ(twice.code, Code::kUnavailable);
  EXPECT_THAT(twice.message, AllOf(HasSubstr("\"r\""), HasSubstr("session 1")));

  node.Close(engine.scheduler);  // the socket has gone, the process has not
  EXPECT_EQ(node.Send(second, CoreDriver::AttachAs("r", Role::kBoth, 0)).code, Code::kUnavailable);
  AttachRequest naming = CoreDriver::AttachAs("r", Role::kBoth, 0);
  naming.replaces = SessionId(99);
  EXPECT_EQ(node.Send(second, naming).code, Code::kInvalid);
  naming.replaces = engine.scheduler;
  for (const uint64_t other : {uint64_t{0}, naming.process + 1}) {
    AttachRequest foreign = naming;
    foreign.process = other;  // it cannot know whether the copies have drained
    const Answer refused = node.Send(second, foreign);
    EXPECT_EQ(refused.code, Code::kInvalid);
    EXPECT_THAT(refused.message, AllOf(HasSubstr("session 1 of another process"),
                                       HasSubstr("one of the same process allowed")));
    EXPECT_EQ(node.status().holds, 1u);
  }
  EXPECT_EQ(node.Send(second, naming).code, Code::kOk);
  EXPECT_EQ(node.status().sessions, 1u);
  node.Exit(engine.scheduler);  // the same process ends later: both pidfds fire
  node.Kill(second);
  EXPECT_EQ(node.status().sessions, 0u);
  EXPECT_EQ(node.status().replicas, 0u);
  node.ExpectBase();
}

// An engine that builds its connector anew in the same process gets its place back by itself.
TEST(AttachTest, AClosedSessionThatHoldsNothingLeavesItsPlaceAtOnce) {
  CoreDriver node;
  const Engine engine = node.StartEngine("r");
  node.Store(engine, BlocksPrompt(1, 3));
  node.Close(engine.scheduler);
  EXPECT_EQ(node.status().sessions, 0u);
  EXPECT_EQ(node.status().replicas, 0u);
  const Engine again = node.StartEngine("r");
  EXPECT_EQ(node.LoadAndSettle(again, RequestId(1), BlocksPrompt(1, 4)), 3u);
  node.Exit(engine.scheduler);  // the life line of the old session says nothing about the new one
  EXPECT_EQ(node.status().sessions, 1u);
  node.ExpectBase();
}

TEST(AttachTest, AnOpenSessionThatIsReplacedIsClosed) {
  CoreDriver node;
  const Engine engine = node.StartEngine("r");
  AttachRequest naming = CoreDriver::AttachAs("r", Role::kBoth, 0);
  naming.replaces = engine.scheduler;
  const SessionId second = node.Open();
  EXPECT_EQ(node.Send(second, naming).code, Code::kOk);
  ASSERT_EQ(node.closes.size(), 1u);
  EXPECT_EQ(node.closes[0].session, engine.scheduler);
  const Answer late = node.Send(engine.scheduler, ProbeRequest{BlocksPrompt(1, 1)});
  EXPECT_EQ(late.code, Code::kInvalid);
  EXPECT_THAT(late.message, HasSubstr("replaced"));
  node.Kill(engine.scheduler);
  EXPECT_EQ(node.Send(second, ProbeRequest{BlocksPrompt(1, 1)}).code, Code::kOk);
  node.ExpectBase();
}

TEST(AttachTest, AKeyIsFreeOnceAllItsProcessesHaveGone) {
  CoreDriver node;
  const Engine engine = node.StartEngine("r", 2);
  const ReserveAnswer reserved = node.Reserve(engine, BlocksPrompt(1, 3));
  node.Begin(engine.workers[1], reserved.claim);
  node.Kill(engine.scheduler);
  node.Kill(engine.workers[0]);
  EngineOptions other;
  other.fields = {{"model", "other"}};
  const SessionId early = node.Open();
  EXPECT_EQ(node.Send(early, CoreDriver::AttachAs("r", Role::kBoth, 0, other)).code,
            Code::kInvalid);
  node.Close(engine.workers[1]);
  EXPECT_EQ(node.Send(early, CoreDriver::AttachAs("r", Role::kBoth, 0, other)).code, Code::kInvalid)
      << "a closed socket is not a dead process: it may still write";
  node.Exit(engine.workers[1]);
  EXPECT_EQ(node.Send(early, CoreDriver::AttachAs("r", Role::kBoth, 0, other)).code, Code::kOk);
  node.ExpectBase();
}

TEST(AttachTest, AWorkerThatDiedCanComeBackAndTheReplicaServesAgain) {
  CoreDriver node;
  Engine engine = node.StartEngine("r", 2);
  node.Store(engine, BlocksPrompt(1, 3));
  node.Exit(engine.workers[1]);  // the pidfd fires before the socket is seen to end
  const Answer gap = node.Send(engine.scheduler, ProbeRequest{BlocksPrompt(1, 3)});
  EXPECT_EQ(gap.code, Code::kUnavailable);
  EXPECT_THAT(gap.message, HasSubstr("worker 1 is gone"));
  node.Close(engine.workers[1]);
  EXPECT_THAT(node.Send(engine.scheduler, ProbeRequest{BlocksPrompt(1, 3)}).message,
              HasSubstr("worker 1 is gone"));
  EngineOptions options;
  options.shards = 2;
  engine.workers[1] = node.Open();
  AttachRequest extra = CoreDriver::AttachAs("r", Role::kWorker, 1, options);
  extra.fields.emplace_back("late", "1");
  const Answer changed = node.Send(engine.workers[1], extra);
  EXPECT_EQ(changed.code, Code::kInvalid);
  EXPECT_THAT(changed.message, HasSubstr("\"late\""));
  EXPECT_EQ(node.Send(engine.workers[1], CoreDriver::AttachAs("r", Role::kWorker, 1, options)).code,
            Code::kOk);
  EXPECT_EQ(node.LoadAndSettle(engine, RequestId(1), BlocksPrompt(1, 3)), 3u);
  node.KillEngine(engine);
  node.ExpectBase();
}

TEST(AttachTest, SessionsAndSpacesHaveLimits) {
  CoreDriver node;
  for (uint32_t i = 0; i < limits::kSpaces; ++i) {
    EngineOptions options;
    options.fields = {{"model", std::to_string(i)}};
    node.StartEngine("r" + std::to_string(i), options);
  }
  EngineOptions options;
  options.fields = {{"model", "one more"}};
  const SessionId refused = node.Open();
  const Answer space = node.Send(refused, CoreDriver::AttachAs("x", Role::kBoth, 0, options));
  EXPECT_EQ(space.code, Code::kLimit);
  EXPECT_THAT(space.message, AllOf(HasSubstr("65 spaces"), HasSubstr("at most 64")));
  EXPECT_EQ(node.status().replicas, limits::kSpaces);

  while (node.status().sessions < limits::kSessions) node.Open();
  const SessionId over = node.Open();
  ASSERT_EQ(node.closes.size(), 1u);
  EXPECT_EQ(node.closes[0].session, over);
  EXPECT_THAT(node.closes[0].reason, HasSubstr("at most 1024"));
  node.Close(over);
  node.Close(refused);
  node.Open();
  EXPECT_EQ(node.closes.size(), 1u) << "a closed session makes room";
}

TEST(AttachTest, ADrainingNodeTakesNobodyAndLetsWhatRunsEnd) {
  CoreDriver node;
  const Engine engine = node.StartEngine("r");
  node.Store(engine, BlocksPrompt(1, 4));
  const AcquireAnswer hit = node.Acquire(engine, RequestId(1), BlocksPrompt(1, 4));
  const ReserveAnswer store = node.Reserve(engine, BlocksPrompt(2, 2));
  const BeginItem begun = node.Begin(engine.scheduler, store.claim);
  node.Input(DrainRequested{});
  node.Input(DrainRequested{});
  EXPECT_TRUE(node.status().draining);
  EXPECT_EQ(node.steps["drain.started"], 1u);
  EXPECT_EQ(node.Send(node.Open(), CoreDriver::AttachAs("s", Role::kBoth, 0)).code,
            Code::kUnavailable);
  EXPECT_EQ(node.Send(engine.scheduler, AcquireRequest{RequestId(2), BlocksPrompt(1, 4)}).code,
            Code::kUnavailable);
  ReserveRequest reserve;
  reserve.prompt = BlocksPrompt(3, 1);
  reserve.to = 1;
  EXPECT_EQ(node.Send(engine.scheduler, reserve).code, Code::kUnavailable);

  EXPECT_EQ(node.Begin(engine.scheduler, hit.claim).code, Code::kOk);
  EXPECT_EQ(node.End(engine.scheduler, LoadEnd(hit.claim)), Code::kOk);
  EXPECT_EQ(node.End(engine.scheduler, StoreEnd(begun)), Code::kOk);
  SettleRequest settle;
  settle.request = RequestId(1);
  settle.host = 4 * kBlock;
  node.Settle(engine, settle);
  node.ExpectBase();
}

TEST(AttachTest, StepsAreNamedOnceEach) {
  std::map<std::string_view, int> seen;
  for (std::string_view name : CoreStepNames()) {
    EXPECT_EQ(++seen[name], 1) << name;
    EXPECT_NE(name.find('.'), std::string_view::npos) << name;
  }
  EXPECT_EQ(CoreStepName(CoreStep::kSessionOpened), "session.opened");
  EXPECT_EQ(CoreStepName(CoreStep::kBeginHeld), "begin.held");
  EXPECT_EQ(CoreStepName(CoreStep::kClaimExpired), "claim.expired");
  EXPECT_EQ(CoreStepName(CoreStep::kDrainStarted), "drain.started");
}

}  // namespace
}  // namespace pando::testing
