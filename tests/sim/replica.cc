#include "tests/sim/replica.h"

#include <algorithm>
#include <utility>

#include "node/core/limits.h"

namespace pando::sim {

Replica::Replica(const ReplicaOptions& options, const World& world)
    : options_(options), world_(world) {
  processes_.resize(options_.single ? 1 : 1 + options_.shards);
  for (size_t i = 0; i < processes_.size(); ++i) {
    processes_[i].role = options_.single ? Role::kBoth : i == 0 ? Role::kScheduler : Role::kWorker;
    processes_[i].shard = i == 0 ? 0 : static_cast<uint32_t>(i - 1);
  }
}

// ---- Processes

void Replica::Start() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    world_.events->After(world_.random->Below(500), [this, i] { StartProcess(i); });
  }
  world_.events->After(1000, [this] { Act(); });
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
  world_.node->Send(
      process.session, attach, 0, [this, index, life = process.life](const Answer& answer) {
        Process& attached = processes_[index];
        if (attached.life != life || !attached.alive) return;
        world_.checker->Expect(answer.code != Code::kInvalid && answer.code != Code::kLimit,
                               "an attach was refused as wrong");
        attached.attached = answer.code == Code::kOk;
        if (attached.attached) return;
        world_.events->After(1000, [this, index, session = attached.session] {
          if (processes_[index].session == session) Attach(index);
        });
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
  world_.events->After(world_.random->Below(3000), [this, index, life = process.life] {
    Process& back = processes_[index];
    if (back.life != life || !back.alive) return;
    LeaveCopies(&back);
    Attach(index);
  });
}

void Replica::LeaveCopies(Process* process) {
  for (const auto& [accessor, store] : process->copies) world_.node->memory().Leave(accessor);
  process->copies.clear();
}

// Socket first and pidfd later, or the other way round; it may write until it is gone.
void Replica::Die(size_t index) {
  Process& process = processes_[index];
  ++deaths_;
  process.attached = false;
  const SessionId session = process.session;
  const uint64_t life = process.life;
  if (world_.random->OneIn(2)) return Exited(index, life);
  world_.node->Close(session);
  world_.events->After(world_.random->Below(4000), [this, index, life] { Exited(index, life); });
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
  world_.events->After(world_.random->Below(200),
                       [this, session = process.session] { world_.node->Close(session); });
  // The engine's other processes mostly follow.
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (i == index || !processes_[i].alive || world_.random->OneIn(3)) continue;
    world_.events->After(world_.random->Below(2000), [this, i, other = processes_[i].life] {
      if (processes_[i].alive && processes_[i].life == other) Die(i);
    });
  }
  world_.events->After(world_.random->Below(5000), [this, index] { StartProcess(index); });
}

// ---- Requests

void Replica::Act() {
  if (stopping_) return;
  world_.events->After(world_.random->Below(120) + 1, [this] { Act(); });
  if (world_.random->OneIn(700)) {
    const size_t index = world_.random->Below(processes_.size());
    if (processes_[index].alive) Die(index);
  } else if (world_.random->OneIn(500)) {
    LoseSocket(world_.random->Below(processes_.size()));
  }
  if (!Serving()) return;
  switch (world_.random->Below(12)) {
    case 0:
      return StorePrompt();
    case 1:
      return Misbehave();
    default:
      return NewRequest();
  }
}

Nanos Replica::ClaimDeadline() {
  const uint64_t life = world_.random->OneIn(3) ? 300 : 20'000;
  return world_.events->In(world_.random->Below(life));
}

void Replica::NewRequest() {
  auto request = std::make_shared<Request>();
  request->id = RequestId(++last_request_);
  request->prompt = RandomPrompt(world_.random);
  request->prompt_tokens = request->prompt.data.tokens.size();
  AcquireRequest acquire{request->id, request->prompt.data, 0, ClaimDeadline(),
                         /*compute=*/options_.intents && world_.random->OneIn(2)};
  const Nanos deadline = world_.random->OneIn(10) ? world_.events->In(world_.random->Below(60)) : 0;
  world_.node->Send(scheduler().session, std::move(acquire), deadline,
                    [this, request](const Answer& answer) {
                      if (answer.code != Code::kOk) return;
                      const auto& hit = std::get<AcquireAnswer>(answer.body);
                      const uint64_t tokens = uint64_t{hit.blocks} * kBlockTokens;
                      world_.checker->Expect(hit.blocks == 0 || tokens < request->prompt_tokens,
                                             "all tokens of a prompt were served");
                      if (hit.ticket != 0 && !world_.random->OneIn(4)) return Await(request, hit);
                      LoadRequest(request, hit.claim, hit.blocks);
                    });
}

void Replica::Await(const RequestRef& request, const AcquireAnswer& hit) {
  const Nanos until = world_.events->In(world_.random->Below(5000));
  world_.node->Send(
      scheduler().session, AwaitRequest{hit.ticket, until}, 0,
      [this, request, hit](const Answer& answer) {
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
  job->prompt = request->prompt;
  job->done = [this, request, blocks](bool ok) {
    if (ok) request->loaded_blocks = blocks;
    StoreRequest(request);
  };
  Run(job);
}

void Replica::StoreRequest(const RequestRef& request) {
  if (world_.random->OneIn(4)) return SettleRequestNow(request);
  ReserveRequest reserve;
  reserve.request = request->id;
  if (world_.random->OneIn(3)) {
    reserve.append_tokens = request->prompt.Grow(world_.random->Next(), world_.random->Below(12));
  }
  reserve.to = request->prompt.blocks();
  reserve.claim_deadline = ClaimDeadline();
  const Nanos deadline = world_.random->OneIn(15) ? world_.events->In(5) : 0;
  world_.node->Send(scheduler().session, std::move(reserve), deadline,
                    [this, request](const Answer& answer) {
                      const auto* place = std::get_if<ReserveAnswer>(&answer.body);
                      const bool again = world_.random->OneIn(3);  // more was decoded
                      if (place == nullptr || place->claim == ClaimId()) {
                        return again ? StoreRequest(request) : SettleRequestNow(request);
                      }
                      auto job = std::make_shared<Job>();
                      job->claim = place->claim;
                      job->store = true;
                      job->prompt = request->prompt;
                      job->done = [this, request, again](bool) {
                        again ? StoreRequest(request) : SettleRequestNow(request);
                      };
                      Run(job);
                    });
}

void Replica::StorePrompt() {
  auto job = std::make_shared<Job>();
  job->store = true;
  job->prompt = RandomPrompt(world_.random);
  job->done = [](bool) {};
  ReserveRequest reserve;
  reserve.prompt = job->prompt.data;
  reserve.to = job->prompt.blocks();
  reserve.claim_deadline = ClaimDeadline();
  world_.node->Send(scheduler().session, std::move(reserve), 0, [this, job](const Answer& answer) {
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
  world_.node->Send(scheduler().session, settle, 0, [this, request](const Answer& answer) {
    ++settled_;
    blocks_loaded_ += request->loaded_blocks;
    world_.checker->Expect(answer.code != Code::kInvalid, "honest numbers were refused");
  });
}

// What must be refused without an effect: claims that are over, guessed, or of somebody else.
void Replica::Misbehave() {
  const ClaimId known =
      recent_.empty() ? ClaimId(1) : recent_[world_.random->Below(recent_.size())];
  const SessionId worker = processes_[WorkerIndex(0)].session;
  switch (world_.random->Below(3)) {
    case 0:  // an abort, of a claim that may stand
      return world_.node->Send(scheduler().session, AbortRequest{{known}}, 0, nullptr);
    case 1: {  // an End without a Begin
      EndItem item;
      item.claim = ClaimId(known.value() + 100'000'000);
      return world_.node->Send(worker, EndRequest{{item}}, 0, nullptr);
    }
    default:  // a guess that is likely to be another replica's
      return world_.node->Send(scheduler().session,
                               AbortRequest{{ClaimId(known.value() + 1'000'000)}}, 0, nullptr);
  }
}

}  // namespace pando::sim
