#include "tests/node/core/driver.h"

#include <algorithm>

namespace pando::testing {

std::vector<uint32_t> Tokens(uint32_t seed, uint64_t count) {
  std::vector<uint32_t> tokens(count);
  for (uint64_t i = 0; i < count; ++i) {
    tokens[i] = seed * 1'000'003u + static_cast<uint32_t>(i);
  }
  return tokens;
}

PromptData PublicPrompt(std::vector<uint32_t> tokens) {
  PromptData prompt;
  prompt.tokens = std::move(tokens);
  return prompt;
}

PromptData BlocksPrompt(uint32_t seed, uint32_t blocks, uint32_t more_tokens) {
  return PublicPrompt(Tokens(seed, uint64_t{blocks} * kBlock + more_tokens));
}

CoreDriver::CoreDriver(const Options& options)
    : core_({.cache = {.key_secret = "", .extent_pages_max = options.extent_pages},
             .slab_bytes = options.slab_bytes,
             .first_claim = options.first_claim},
            this) {
  for (uint32_t i = 0; i < options.extents; ++i) Input(ExtentReady{ExtentId(i)});
}

void CoreDriver::Keep(Output output) {
  if (auto* send = std::get_if<SendAnswer>(&output)) {
    EXPECT_TRUE(awaited.emplace(send->serial, std::move(send->answer)).second)
        << "every request has one answer";
  }
  if (auto* log = std::get_if<LogLine>(&output)) logs.push_back(std::move(*log));
  if (auto* close = std::get_if<CloseSession>(&output)) closes.push_back(std::move(*close));
  if (auto* gone = std::get_if<SessionForgotten>(&output)) forgotten.push_back(gone->session);
  if (elsewhere) elsewhere(std::move(output));
}

void CoreDriver::Input(pando::Input input) {
  std::vector<Output> outputs;
  core_.Step(now, std::move(input), &outputs);
  for (Output& output : outputs) Keep(std::move(output));
}

void CoreDriver::Advance(Nanos by) {
  now += by;
  Input(Tick{});
}

std::vector<LogLine> CoreDriver::Logged(std::string_view event) const {
  std::vector<LogLine> lines;
  for (const LogLine& line : logs) {
    if (line.event == event) lines.push_back(line);
  }
  return lines;
}

SessionId CoreDriver::Open() {
  const SessionId session(++last_session_);
  Input(SessionOpened{session});
  return session;
}

void CoreDriver::Kill(SessionId session) {
  Close(session);
  Exit(session);
}

Answer CoreDriver::Send(SessionId session, RequestBody body, Nanos deadline) {
  std::vector<Output> outputs;
  const uint64_t serial = ++last_serial_;
  core_.Step(now, SessionRequest{session, serial, deadline, std::move(body)}, &outputs);
  for (Output& output : outputs) Keep(std::move(output));
  EXPECT_TRUE(awaited.contains(serial)) << "every request has one answer";
  Answer answer = std::move(awaited[serial]);
  awaited.erase(serial);
  if (answer.code != Code::kOk || !std::holds_alternative<SettleAnswer>(answer.body)) {
    EXPECT_EQ(answer.code == Code::kOk, answer.message.empty()) << answer.message;
  }
  return answer;
}

uint64_t CoreDriver::Await(const Engine& engine, uint64_t ticket, Nanos until) {
  std::vector<Output> outputs;
  const uint64_t serial = ++last_serial_;
  core_.Step(now, SessionRequest{engine.scheduler, serial, 0, AwaitRequest{ticket, until}},
             &outputs);
  for (Output& output : outputs) Keep(std::move(output));
  return serial;
}

AttachRequest CoreDriver::AttachAs(const std::string& key, Role role, uint32_t shard,
                                   const EngineOptions& options) {
  AttachRequest attach;
  attach.checksum_formula = limits::kChecksumFormula;
  attach.replica_key = key;
  attach.role = role;
  attach.shard = ShardId(shard);
  attach.world_size = options.shards;
  attach.block_tokens = options.block_tokens;
  attach.page_bytes = options.page_bytes;
  attach.fields = options.fields;
  attach.prefill_tokens_per_s = options.prefill_tokens_per_s;
  attach.has_pidfd = true;
  attach.process = 1;  // all engines of a test are one process, unless it says otherwise
  return attach;
}

Engine CoreDriver::StartEngine(const std::string& key, const EngineOptions& options) {
  Engine engine{key, Open(), {}, options.page_bytes};
  if (options.shards == 1) {
    BodyOf<AttachAnswer>(Send(engine.scheduler, AttachAs(key, Role::kBoth, 0, options)));
    engine.workers = {engine.scheduler};
    return engine;
  }
  BodyOf<AttachAnswer>(Send(engine.scheduler, AttachAs(key, Role::kScheduler, 0, options)));
  for (uint32_t shard = 0; shard < options.shards; ++shard) {
    engine.workers.push_back(Open());
    BodyOf<AttachAnswer>(Send(engine.workers.back(), AttachAs(key, Role::kWorker, shard, options)));
  }
  return engine;
}

Engine CoreDriver::StartEngine(const std::string& key, uint32_t shards) {
  EngineOptions options;
  options.shards = shards;
  return StartEngine(key, options);
}

void CoreDriver::KillEngine(const Engine& engine) {
  Kill(engine.scheduler);
  for (SessionId worker : engine.workers) {
    if (worker != engine.scheduler) Kill(worker);
  }
}

AcquireAnswer CoreDriver::Acquire(const Engine& engine, RequestId request, PromptData prompt,
                                  Nanos claim_deadline, bool compute) {
  AcquireRequest acquire{request, std::move(prompt), 0, claim_deadline, compute};
  return BodyOf<AcquireAnswer>(Send(engine.scheduler, std::move(acquire)));
}

ProbeAnswer CoreDriver::Probe(const Engine& engine, PromptData prompt) {
  return BodyOf<ProbeAnswer>(Send(engine.scheduler, ProbeRequest{std::move(prompt)}));
}

ReserveAnswer CoreDriver::Reserve(const Engine& engine, PromptData prompt, Nanos claim_deadline) {
  ReserveRequest reserve;
  reserve.to = static_cast<uint32_t>(prompt.tokens.size() / kBlock);
  reserve.prompt = std::move(prompt);
  reserve.claim_deadline = claim_deadline;
  return BodyOf<ReserveAnswer>(Send(engine.scheduler, std::move(reserve)));
}

BeginItem CoreDriver::Begin(SessionId worker, ClaimId claim) {
  const auto answer = BodyOf<BeginAnswer>(Send(worker, BeginRequest{{claim}}));
  EXPECT_EQ(answer.items.size(), 1u);
  return answer.items.empty() ? BeginItem{} : answer.items[0];
}

Code CoreDriver::End(SessionId worker, const EndItem& item) {
  const auto answer = BodyOf<EndAnswer>(Send(worker, EndRequest{{item}}));
  EXPECT_EQ(answer.codes.size(), 1u);
  return answer.codes.empty() ? Code::kInvalid : answer.codes[0];
}

void CoreDriver::Settle(const Engine& engine, const SettleRequest& settle) {
  BodyOf<SettleAnswer>(Send(engine.scheduler, settle));
}

uint32_t CoreDriver::Store(const Engine& engine, PromptData prompt) {
  const ReserveAnswer reserved = Reserve(engine, std::move(prompt));
  if (reserved.claim == ClaimId()) return 0;
  for (SessionId worker : engine.workers) {
    const BeginItem begun = Begin(worker, reserved.claim);
    EXPECT_EQ(begun.code, Code::kOk) << begun.message;
    EXPECT_TRUE(begun.store);
    EXPECT_EQ(End(worker, StoreEnd(begun)), Code::kOk);
  }
  return reserved.to - reserved.from;
}

uint32_t CoreDriver::LoadAndSettle(const Engine& engine, RequestId request, PromptData prompt) {
  const AcquireAnswer hit = Acquire(engine, request, std::move(prompt));
  if (hit.claim != ClaimId()) {
    for (SessionId worker : engine.workers) {
      EXPECT_EQ(Begin(worker, hit.claim).code, Code::kOk);
      EXPECT_EQ(End(worker, LoadEnd(hit.claim)), Code::kOk);
    }
  }
  SettleRequest settle;
  settle.request = request;
  settle.host = uint64_t{hit.blocks} * kBlock;
  Settle(engine, settle);
  return hit.blocks;
}

void CoreDriver::ExpectSound() {
  EXPECT_EQ(core_.SelfCheck(), "");
  const Account& a = status().account;
  EXPECT_EQ(a.prompt,
            a.hit_engine + a.hit_device + a.hit_host + a.hit_disk + a.hit_peer + a.computed);
}

void CoreDriver::ExpectBase() {
  ExpectSound();
  const CoreStatus base = status();
  EXPECT_EQ(base.leases, 0u);
  EXPECT_EQ(base.reservations, 0u);
  EXPECT_EQ(base.holds, 0u);
  EXPECT_EQ(base.requests, 0u);
  EXPECT_EQ(base.tickets, 0u);
  EXPECT_EQ(base.quarantined_bytes, 0u);
  EXPECT_EQ(base.pages.reserved, 0u);
  EXPECT_EQ(base.pages.held, 0u);
  EXPECT_EQ(base.pages.quarantined, 0u);
  for (const SpaceStatus& space : base.spaces) {
    core_.cache().VisitRuns(space.space, UINT64_MAX, [](const RunInfo& run) {
      EXPECT_EQ(run.pins, 0u) << "run " << run.run;
      EXPECT_EQ(run.blocks, run.complete_blocks) << "run " << run.run;
    });
  }
}

EndItem StoreEnd(const BeginItem& begun) {
  EndItem item;
  item.claim = begun.claim;
  for (PageId page : begun.pages) item.checksums.push_back(0x1000u + page.value());
  return item;
}

EndItem LoadEnd(ClaimId claim, std::vector<uint32_t> bad_pages) {
  EndItem item;
  item.claim = claim;
  item.bad_pages = std::move(bad_pages);
  return item;
}

}  // namespace pando::testing
