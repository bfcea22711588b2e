#include "client/ctl/stand_in_replica.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "client/ctl/other_protocol.h"
#include "client/ctl/page_bytes.h"

namespace pando::ctl {
namespace {

constexpr int64_t kClaimLife = 60'000'000'000;   // far beyond the longest load or store
constexpr int64_t kRefusalPoll = 20'000'000;     // between looks at a session that is attaching
constexpr int64_t kInterruptPoll = 100'000'000;  // between looks whether somebody wants it to end
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kPollEveryMs = 50;  // while computing

// Each session tells what its side of an engine knows; the space is the union.
std::unique_ptr<client::Client> OpenScheduler(const ReplicaOptions& options) {
  client::Options session;
  session.socket = options.socket;
  session.replica_key = options.key;
  session.role = client::Role::kScheduler;
  session.world_size = options.shards;
  session.block_tokens = options.block_tokens;
  session.fields = {{"model", ModelName(options.seed)}};
  session.prefill_tokens_per_s = options.prefill_tokens_per_s;
  return client::Client::Create(std::move(session));
}

std::unique_ptr<client::Client> OpenWorker(const ReplicaOptions& options, uint32_t shard) {
  client::Options session;
  session.socket = options.socket;
  session.replica_key = options.key;
  session.role = client::Role::kWorker;
  session.shard = shard;
  session.world_size = options.shards;
  session.page_bytes = options.page_bytes;
  session.fields = {{"layout", "splitmix64 of the token prefix, version 1"}};
  return client::Client::Create(std::move(session));
}

absl::Status WaitForSession(client::Client& session, const std::string& socket, int64_t deadline_ns,
                            Interrupt* interrupt) {
  bool asked = false;
  while (true) {
    if (interrupt->Seen()) return absl::CancelledError("interrupted");
    const int64_t now = client::NowNanos();
    if (session.WaitAttached(std::min(deadline_ns, now + kRefusalPoll))) return absl::OkStatus();
    if (session.state() == client::State::kRefused) {
      return absl::FailedPreconditionError(fmt::format(
          "the node at {} refuses a stand-in replica: {}", socket, session.last_error()));
    }
    if (!asked && !session.last_error().empty()) {
      asked = true;
      if (SpeaksHttp2(socket)) {
        return absl::FailedPreconditionError(
            fmt::format("{} does not speak the engines' protocol: is that the admin socket?\n"
                        "Expected what --socket of the pando-node names.",
                        socket));
      }
    }
    if (now >= deadline_ns) {
      return absl::UnavailableError(
          fmt::format("no node takes sessions at {}: {}\n"
                      "Expected what --socket of a running pando-node names.",
                      socket, session.last_error()));
    }
  }
}

// Writes down how a call ended; true if it did what it was asked for.
bool Note(client::Code code, const std::string& message, Outcome* outcome) {
  if (code == client::Code::kOk) return true;
  // What the node never got, or had in a life before, it does not know: that is no refusal.
  if (code == client::Code::kUnknown && !outcome->reached) return false;
  if (code == client::Code::kLost) {
    outcome->reached = false;
  } else if (outcome->refusal.empty()) {
    outcome->refusal = message.empty() ? "no reason given" : message;
  }
  return false;
}

}  // namespace

std::string ModelName(uint64_t seed) {
  return fmt::format("pando-stand-in/seed-{}", seed);
}

StandInReplica::StandInReplica(const ReplicaOptions& options, Interrupt* interrupt)
    : options_(options),
      interrupt_(interrupt),
      patience_ns_(options.patience_ns),
      scheduler_(OpenScheduler(options)),
      kv_(options.page_bytes) {
  for (uint32_t shard = 0; shard < options.shards; ++shard) {
    workers_.push_back(OpenWorker(options, shard));
  }
}

absl::Status StandInReplica::WaitAttached(int64_t deadline_ns) {
  absl::Status status = WaitForSession(*scheduler_, options_.socket, deadline_ns, interrupt_);
  for (const auto& worker : workers_) {
    if (status.ok()) status = WaitForSession(*worker, options_.socket, deadline_ns, interrupt_);
  }
  return status;
}

Outcome StandInReplica::Play(uint64_t request, std::span<const uint32_t> tokens,
                             std::span<const uint64_t> chain) {
  Outcome outcome;
  outcome.tokens.prompt = tokens.size();
  WaitForNode();
  const Lease lease = Acquire(request, tokens, &outcome);
  const uint64_t hit = Load(lease, chain, &outcome);
  // Counted from what is done, block by block, so that the account can be checked.
  outcome.tokens.hit_host = hit * options_.block_tokens;
  outcome.tokens.computed = (chain.size() - hit) * options_.block_tokens;
  outcome.tokens.computed += tokens.size() % options_.block_tokens;
  outcome.failed_tokens = (lease.blocks - hit) * options_.block_tokens;
  SpendPrefill(outcome.tokens.computed);
  if (lease.open) Store(request, static_cast<uint32_t>(hit), chain, &outcome);
  if (lease.open) Settle(request, &outcome);
  return outcome;
}

int64_t StandInReplica::CallDeadline() const {
  return client::NowNanos() + options_.call_timeout_ns;
}

template <class Result>
Result& StandInReplica::Wait(client::Client& session, client::Call<Result>& call) {
  while (!session.WaitUntil(call, client::NowNanos() + kInterruptPoll) && !interrupt_->Seen()) {
  }
  return call.get();
}

void StandInReplica::WaitForNode() {
  const int64_t until = client::NowNanos() + patience_ns_;
  bool all = true;
  const auto wait = [&](client::Client& session) {
    while (!session.WaitAttached(std::min(until, client::NowNanos() + kInterruptPoll))) {
      if (client::NowNanos() < until && !interrupt_->Seen()) continue;
      all = false;
      return;
    }
  };
  wait(*scheduler_);
  for (const auto& worker : workers_) wait(*worker);
  patience_ns_ = all ? options_.patience_ns : patience_ns_ / 2;
}

StandInReplica::Lease StandInReplica::Acquire(uint64_t request, std::span<const uint32_t> tokens,
                                              Outcome* outcome) {
  const int64_t start = client::NowNanos();
  auto call = scheduler_->StartAcquire(request, {.tokens = tokens, .segments = {}, .extras = {}},
                                       /*engine_hit_tokens=*/0, start + kClaimLife, CallDeadline(),
                                       client::Intent::kCompute);
  const client::AcquireResult& result = Wait(*scheduler_, call);
  if (!Note(result.code, result.message, outcome)) {
    return {.claim = {}, .blocks = 0, .open = result.code == client::Code::kLost};
  }
  outcome->acquire_ns = client::NowNanos() - start;
  const Lease lease{.claim = result.claim, .blocks = result.blocks, .open = true};
  const bool await = result.ticket != 0 && options_.await_ns > 0;
  return await ? Await(result.ticket, lease, outcome) : lease;
}

StandInReplica::Lease StandInReplica::Await(uint64_t ticket, const Lease& lease, Outcome* outcome) {
  const int64_t start = client::NowNanos();
  const int64_t until = start + options_.await_ns;
  auto call = scheduler_->StartAwait(ticket, until, until + options_.call_timeout_ns);
  const client::AwaitResult& result = Wait(*scheduler_, call);
  if (!Note(result.code, result.message, outcome)) return lease;
  outcome->await_ns = client::NowNanos() - start;
  outcome->waits = {
      .tickets = 1, .more = result.claim ? 1u : 0u, .late = result.in_flight ? 1u : 0u};
  if (!result.claim) return lease;
  return {.claim = result.claim, .blocks = result.blocks, .open = true};
}

void StandInReplica::SpendPrefill(uint64_t tokens) {
  if (options_.prefill_speedup == 0 || options_.prefill_tokens_per_s == 0) return;
  const double seconds = static_cast<double>(tokens) /
                         static_cast<double>(options_.prefill_tokens_per_s) /
                         static_cast<double>(options_.prefill_speedup);
  const int64_t end = client::NowNanos() + static_cast<int64_t>(seconds * 1e9);
  // The session is looked after meanwhile, as an engine's scheduler does.
  for (int64_t now = client::NowNanos(); now < end && !interrupt_->Seen();
       now = client::NowNanos()) {
    const int64_t left_ms = (end - now) / kMillisecond;
    ::poll(nullptr, 0, static_cast<int>(std::clamp<int64_t>(left_ms, 1, kPollEveryMs)));
    scheduler_->Poll();
  }
}

client::Hold StandInReplica::Begin(uint32_t shard, const client::Claim& claim, Outcome* outcome) {
  client::Client& worker = *workers_[shard];
  auto call = worker.StartBegin({&claim, 1}, CallDeadline());
  client::BeginResult& result = Wait(worker, call);
  if (Note(result.code, result.message, outcome) && result.codes.size() == 1 &&
      Note(result.codes[0], result.message, outcome)) {
    return std::move(result.holds[0]);
  }
  scheduler_->Abort({&claim, 1});
  scheduler_->Flush();
  return {};
}

uint64_t StandInReplica::Load(const Lease& lease, std::span<const uint64_t> chain,
                              Outcome* outcome) {
  uint64_t good = lease.blocks;
  for (uint32_t shard = 0; shard < options_.shards && lease.blocks > 0; ++shard) {
    good = std::min(good, LoadShard(shard, lease, chain, outcome));
  }
  return good;
}

uint64_t StandInReplica::LoadShard(uint32_t shard, const Lease& lease,
                                   std::span<const uint64_t> chain, Outcome* outcome) {
  int64_t start = client::NowNanos();
  client::Hold hold = Begin(shard, lease.claim, outcome);
  int64_t spent = client::NowNanos() - start;
  const uint64_t pages = std::min<uint64_t>({hold.pages(), lease.blocks, chain.size()});
  if (pages == 0) return 0;
  uint64_t good = 0;
  for (uint32_t i = 0; i < pages; ++i) {
    const uint32_t slot = i % kv_.slots();
    kv_.Spoil(slot);
    start = client::NowNanos();
    const bool loaded = hold.Load(i, kv_.pieces(slot));
    spent += client::NowNanos() - start;  // comparing is the proof's time, not the cache's
    if (!loaded) {
      outcome->pages.bad += hold.live() ? 1 : 0;
      continue;
    }
    const bool right = kv_.Holds(slot, PageBytes(chain[i], shard));
    ++outcome->pages.loaded;
    ++(right ? outcome->pages.verified : outcome->pages.wrong);
    if (right && good == i) ++good;
  }
  start = client::NowNanos();
  auto end = workers_[shard]->StartEnd(std::move(hold), CallDeadline());
  const client::EndResult& ended = Wait(*workers_[shard], end);
  Note(ended.code, ended.message, outcome);
  outcome->load_ns += spent + client::NowNanos() - start;
  return good;
}

void StandInReplica::Store(uint64_t request, uint32_t from, std::span<const uint64_t> chain,
                           Outcome* outcome) {
  if (from >= chain.size()) return;
  const auto to = static_cast<uint32_t>(chain.size());
  auto call = scheduler_->StartReserve(request, {}, {}, from, to, client::NowNanos() + kClaimLife,
                                       CallDeadline());
  const client::ReserveResult& result = Wait(*scheduler_, call);
  if (!Note(result.code, result.message, outcome)) return;
  outcome->full = result.full;
  for (uint32_t shard = 0; shard < options_.shards && result.claim; ++shard) {
    StoreShard(shard, result.claim, chain, outcome);
  }
}

void StandInReplica::StoreShard(uint32_t shard, const client::Claim& claim,
                                std::span<const uint64_t> chain, Outcome* outcome) {
  client::Hold hold = Begin(shard, claim, outcome);
  if (hold.pages() == 0) return;
  uint64_t stored = 0;
  for (uint32_t i = 0; i < hold.pages() && hold.first_block() + i < chain.size(); ++i) {
    const uint32_t slot = i % kv_.slots();
    kv_.Compute(slot, PageBytes(chain[hold.first_block() + i], shard));
    stored += hold.Store(i, kv_.const_pieces(slot)) ? 1 : 0;
  }
  auto end = workers_[shard]->StartEnd(std::move(hold), CallDeadline());
  const client::EndResult& ended = Wait(*workers_[shard], end);
  if (Note(ended.code, ended.message, outcome)) outcome->pages.stored += stored;
}

void StandInReplica::Settle(uint64_t request, Outcome* outcome) {
  client::Used used;
  used.host = outcome->tokens.hit_host;
  used.failed = outcome->failed_tokens;
  if (options_.prefill_tokens_per_s > 0) {
    used.prefill_micros = outcome->tokens.computed * 1'000'000 / options_.prefill_tokens_per_s;
  }
  auto call = scheduler_->StartSettle(request, used, CallDeadline());
  const client::SettleResult& result = Wait(*scheduler_, call);
  Note(result.code, result.message, outcome);
}

}  // namespace pando::ctl
