#include "tests/sim/replica.h"

#include <algorithm>
#include <utility>

#include "node/core/limits.h"

namespace pando::sim {
namespace {

constexpr uint64_t kAttachAgain = 1000;  // units
// Of claims and of waiting, once nothing goes wrong any more.
constexpr uint64_t kCalmLife = 60 * kUnitsPerSecond, kCalmWait = 20 * kUnitsPerSecond;

}  // namespace

Replica::Replica(const ReplicaOptions& options, const World& world)
    : options_(options),
      world_(world),
      random_(options.seed),
      pauses_(options.seed + 1),
      decider_(world.decisions, options.source) {
  world_.node->on_crash.push_back([this] { NodeLost(); });
  processes_.resize(options_.single ? 1 : 1 + options_.shards);
  for (size_t i = 0; i < processes_.size(); ++i) {
    processes_[i].role = options_.single ? Role::kBoth : i == 0 ? Role::kScheduler : Role::kWorker;
    processes_[i].shard = i == 0 ? 0 : static_cast<uint32_t>(i - 1);
  }
}

// ---- Processes

void Replica::Start() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    world_.events->After(random_.Below(500), [this, i] { StartProcess(i); });
  }
}

void Replica::Stop() {
  stopping_ = true;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].alive) Die(i);
  }
}

void Replica::StartProcess(size_t index) {
  Process& process = processes_[index];
  if (stopping_ || process.alive) return;
  process.alive = true;
  process.session = SessionId();
  process.replaces = SessionId();
  ++process.life;
  Attach(index);
}

void Replica::Attach(size_t index) {
  Process& process = processes_[index];
  if (stopping_ || !process.alive) return;
  if (!world_.node->up()) return AttachAgain(index);
  if (!world_.node->open(process.session)) process.session = world_.node->Open();
  AttachRequest attach;
  attach.checksum_formula = limits::kChecksumFormula;
  attach.replica_key = options_.key;
  attach.role = process.role;
  attach.shard = ShardId(process.shard);
  attach.world_size = options_.shards;
  attach.block_tokens = index == 0 ? kBlockTokens : 0;
  // Big pages: the quarantine cap of 64 MiB is reached with a few of them.
  attach.page_bytes = Bytes((4ull << 20) << options_.geometry % 2);
  attach.fields = {{"model", "m"}, {"geometry", std::to_string(options_.geometry)}};
  attach.replaces = process.replaces;
  attach.has_pidfd = true;
  attach.process = process.life * processes_.size() + index;  // no two lives of one replica alike
  world_.node->Send(process.session, attach, 0,
                    [this, index, life = process.life](const Answer& answer) {
                      Process& attached = processes_[index];
                      if (attached.life != life || !attached.alive) return;
                      if (answer.code == Code::kInvalid || answer.code == Code::kLimit) {
                        world_.checker->Fail("an attach was refused as wrong: " + answer.message);
                      }
                      attached.attached = answer.code == Code::kOk;
                      if (!attached.attached) AttachAgain(index);
                    });
}

void Replica::AttachAgain(size_t index) {
  const Process& process = processes_[index];
  world_.events->After(kAttachAgain, [this, index, session = process.session] {
    const Process& tried = processes_[index];
    if (tried.session == session && !tried.attached) Attach(index);
  });
}

bool Replica::Serving() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.alive && process.attached; });
}

// The socket ends, the process lives: once its copies have drained it attaches again.
void Replica::LoseSocket(size_t index) {
  Process& process = processes_[index];
  if (!process.alive || !process.attached) return;
  process.attached = false;
  process.replaces = process.session;
  world_.node->Close(process.session);
  ++faults_;
  world_.events->After(random_.Below(3000), [this, index, life = process.life] {
    Process& back = processes_[index];
    if (back.life != life || !back.alive || back.attached) return;
    LeaveCopies(&back);
    Attach(index);
  });
}

// As above, and what there was to be replaced is gone too.
void Replica::NodeLost() {
  for (size_t index = 0; index < processes_.size(); ++index) {
    Process& process = processes_[index];
    process.attached = false;
    process.session = SessionId();
    process.replaces = SessionId();
    if (!process.alive) continue;
    world_.events->After(random_.Below(3000), [this, index, life = process.life] {
      Process& back = processes_[index];
      if (back.life != life || !back.alive || back.session != SessionId()) return;
      LeaveCopies(&back);
      Attach(index);
    });
  }
}

void Replica::LeaveCopies(Process* process) {
  for (const auto& [number, copy] : process->copies) copy.memory->Leave(copy.accessor);
  process->copies.clear();
}

// Socket first and pidfd later, or the other way round; it may write until it is gone.
void Replica::Die(size_t index) {
  Process& process = processes_[index];
  ++deaths_;
  ++faults_;
  process.attached = false;
  const SessionId session = process.session;
  const uint64_t life = process.life;
  if (random_.OneIn(2)) return Exited(index, life);
  world_.node->Close(session);
  world_.events->After(random_.Below(4000), [this, index, life] { Exited(index, life); });
}

void Replica::Exited(size_t index, uint64_t life) {
  Process& process = processes_[index];
  if (!process.alive || process.life != life) return;
  process.alive = false;
  process.attached = false;
  LeaveCopies(&process);
  if (process.replaces != SessionId()) world_.node->Exit(process.replaces);
  world_.node->Exit(process.session);
  // Its socket ends with it, be it seen a little later.
  world_.events->After(random_.Below(200),
                       [this, session = process.session] { world_.node->Close(session); });
  // The engine's other processes mostly follow.
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (i == index || !processes_[i].alive || random_.OneIn(3)) continue;
    world_.events->After(random_.Below(2000), [this, i, other = processes_[i].life] {
      if (processes_[i].alive && processes_[i].life == other) Die(i);
    });
  }
  world_.events->After(random_.Below(5000), [this, index] { StartProcess(index); });
}

// ---- Requests

void Replica::Act(uint64_t times, uint64_t pause) {
  if (stopping_ || calm_ || times == 0) return;
  world_.events->After(pauses_.Below(pause) + 1, [this, times, pause] { Act(times - 1, pause); });
  if (const std::optional<Random> random = decider_.Next()) ActOnce(*random);
}

void Replica::ActOnce(Random random) {
  if (Chance(&random, Fault::kDeath, options_.one_in)) {
    const size_t index = random.Below(processes_.size());
    if (processes_[index].alive) Die(index);
  } else if (Chance(&random, Fault::kSocket, options_.one_in)) {
    LoseSocket(random.Below(processes_.size()));
  }
  if (!Serving()) return;
  if (random.OneIn(12)) return StorePrompt(random);
  if (Chance(&random, Fault::kMisuse, 12)) return Misbehave(random);
  auto request = std::make_shared<Request>();
  request->random = random;
  request->prompt = world_.workload->Draw(&request->random);
  NewRequest(request);
}

void Replica::Ask(const SimPrompt& prompt, std::function<void(uint32_t blocks)> done) {
  auto request = std::make_shared<Request>();
  request->random = Random(random_.Next());
  request->prompt = prompt;
  request->done = std::move(done);
  NewRequest(request);
}

// What the scheduler says; nothing while it is not attached.
void Replica::Schedule(RequestBody body, Nanos deadline, SimNode::OnAnswer on_answer) {
  if (!scheduler().attached) return;
  world_.node->Send(scheduler().session, std::move(body), deadline, std::move(on_answer));
}

// By the node's clock.
Nanos Replica::ClaimDeadline(Random* random) const {
  if (calm_) return world_.node->In(kCalmLife);
  const uint64_t life = random->OneIn(3) ? 300 : 20'000;
  return world_.node->In(random->Below(life));
}

void Replica::NewRequest(const RequestRef& request) {
  Random* random = &request->random;
  request->id = RequestId(++last_request_);
  request->prompt_tokens = request->prompt.data.tokens.size();
  AcquireRequest acquire{request->id, request->prompt.data, 0, ClaimDeadline(random),
                         /*compute=*/options_.intents && random->OneIn(2)};
  const Nanos deadline = Chance(random, Fault::kHaste, 10) ? world_.node->In(random->Below(60)) : 0;
  Schedule(std::move(acquire), deadline, [this, request](const Answer& answer) {
    if (answer.code != Code::kOk) return;
    const auto& hit = std::get<AcquireAnswer>(answer.body);
    const uint64_t tokens = uint64_t{hit.blocks} * kBlockTokens;
    world_.checker->Expect(hit.blocks == 0 || tokens < request->prompt_tokens,
                           "all tokens of a prompt were served");
    if (hit.ticket != 0 && (calm_ || !request->random.OneIn(4))) return Await(request, hit);
    LoadRequest(request, hit.claim, hit.blocks);
  });
}

void Replica::Await(const RequestRef& request, const AcquireAnswer& hit) {
  const Nanos until = world_.node->In(calm_ ? kCalmWait : request->random.Below(5000));
  Schedule(AwaitRequest{hit.ticket, until}, 0, [this, request, hit](const Answer& answer) {
    const auto* more = std::get_if<AwaitAnswer>(&answer.body);
    if (more == nullptr) return LoadRequest(request, hit.claim, hit.blocks);
    world_.checker->Expect(more->blocks >= hit.blocks, "an await took blocks away");
    if (more->claim == ClaimId()) return LoadRequest(request, hit.claim, hit.blocks);
    world_.checker->Expect(uint64_t{more->blocks} * kBlockTokens < request->prompt_tokens,
                           "all tokens of a prompt were served");
    awaited_blocks_ += more->blocks - hit.blocks;
    LoadRequest(request, more->claim, more->blocks);
  });
}

void Replica::LoadRequest(const RequestRef& request, ClaimId claim, uint32_t blocks) {
  if (claim == ClaimId()) return StoreRequest(request);
  auto job = std::make_shared<Job>();
  job->claim = claim;
  job->random = Random(request->random.Next());
  job->prompt = request->prompt;
  job->done = [this, request, blocks](bool ok) {
    if (ok) request->loaded_blocks = blocks;
    StoreRequest(request);
  };
  Run(job);
}

void Replica::StoreRequest(const RequestRef& request) {
  Random* random = &request->random;
  if (!calm_ && random->OneIn(4)) return SettleRequestNow(request);
  ReserveRequest reserve;
  reserve.request = request->id;
  if (!calm_ && random->OneIn(3)) {
    const uint64_t part = random->Next();
    reserve.append_tokens = request->prompt.Grow(part, random->Below(12));
  }
  reserve.to = request->prompt.blocks();
  reserve.claim_deadline = ClaimDeadline(random);
  const Nanos deadline = Chance(random, Fault::kHaste, 15) ? world_.node->In(5) : 0;
  Schedule(std::move(reserve), deadline,
           [this, request](const Answer& answer) { StorePlaced(request, answer); });
}

void Replica::StorePlaced(const RequestRef& request, const Answer& answer) {
  const auto* place = std::get_if<ReserveAnswer>(&answer.body);
  const bool again = !calm_ && request->random.OneIn(3);  // more was decoded
  if (place == nullptr || place->claim == ClaimId()) {
    return again ? StoreRequest(request) : SettleRequestNow(request);
  }
  auto job = std::make_shared<Job>();
  job->claim = place->claim;
  job->store = true;
  job->random = Random(request->random.Next());
  job->prompt = request->prompt;
  job->done = [this, request, again](bool) {
    again ? StoreRequest(request) : SettleRequestNow(request);
  };
  Run(job);
}

void Replica::StorePrompt(Random random) {
  auto job = std::make_shared<Job>();
  job->store = true;
  job->prompt = world_.workload->Draw(&random);
  job->random = random;
  job->done = [](bool) {};
  ReserveRequest reserve;
  reserve.prompt = job->prompt.data;
  reserve.to = job->prompt.blocks();
  reserve.claim_deadline = ClaimDeadline(&job->random);
  Schedule(std::move(reserve), 0, [this, job](const Answer& answer) {
    const auto* place = std::get_if<ReserveAnswer>(&answer.body);
    if (place == nullptr || place->claim == ClaimId()) return;
    job->claim = place->claim;
    Run(job);
  });
}

void Replica::SettleRequestNow(const RequestRef& request) {
  SettleRequest settle;
  settle.request = request->id;
  settle.host = uint64_t{request->loaded_blocks} * kBlockTokens;
  Schedule(settle, 0, [this, request](const Answer& answer) {
    ++settled_;
    if (request->done) request->done(request->loaded_blocks);
    blocks_loaded_ += request->loaded_blocks;
    if (answer.code == Code::kInvalid) {
      world_.checker->Fail("honest numbers were refused: " + answer.message);
    }
  });
}

// What must be refused without an effect: claims that are over, guessed, or of somebody else.
void Replica::Misbehave(Random random) {
  const ClaimId known = recent_.empty() ? ClaimId(1) : recent_[random.Below(recent_.size())];
  const SessionId worker = processes_[WorkerIndex(0)].session;
  switch (random.Below(3)) {
    case 0:  // an abort, of a claim that may stand
      return Schedule(AbortRequest{{known}}, 0, nullptr);
    case 1: {  // an End without a Begin
      EndItem item;
      item.claim = ClaimId(known.value() + 100'000'000);
      return world_.node->Send(worker, EndRequest{{item}}, 0, nullptr);
    }
    default:  // a guess that is likely to be another replica's
      return Schedule(AbortRequest{{ClaimId(known.value() + 1'000'000)}}, 0, nullptr);
  }
}

}  // namespace pando::sim
