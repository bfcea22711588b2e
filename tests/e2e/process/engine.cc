#include "tests/e2e/process/engine.h"

#include <array>
#include <cstring>
#include <utility>

#include "tests/e2e/process/stamp.h"

namespace pando::e2e {
namespace {

constexpr size_t kPieces = 4;  // of a page, as an engine's layers

template <class Byte>
std::array<std::span<Byte>, kPieces> Split(std::span<Byte> page) {
  std::array<std::span<Byte>, kPieces> pieces;
  const size_t size = page.size() / kPieces;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces[i] = i + 1 < kPieces ? page.subspan(i * size, size) : page.subspan(i * size);
  }
  return pieces;
}

}  // namespace

Engine::Engine(const EngineOptions& options) : options_(options) {
  MakeClient(0);
}

void Engine::MakeClient(uint64_t replaces) {
  client::Options o;
  o.socket = options_.socket;
  o.replica_key = options_.replica_key;
  o.role = options_.role;
  o.shard = options_.shard;
  o.world_size = options_.world_size;
  o.block_tokens = options_.block_tokens;
  o.page_bytes = options_.page_bytes;
  o.fields = {{"model", options_.model}};
  o.retry_max_ns = 200'000'000;
  o.steps = options_.steps;
  o.replaces = replaces;
  client_ = client::Client::Create(std::move(o));
}

client::AcquireResult Engine::Acquire(uint64_t request, uint64_t seed, uint64_t tokens,
                                      int64_t claim_ns, client::Intent intent) {
  const std::vector<uint32_t> all = Tokens(seed, tokens);
  const int64_t now = client::NowNanos();
  auto call = client_->StartAcquire(request, {.tokens = all, .segments = {}, .extras = {}}, 0,
                                    now + claim_ns, now + options_.deadline_ns, intent);
  return std::move(client_->Wait(call));
}

client::ReserveResult Engine::Reserve(uint64_t request, uint32_t from, uint32_t to,
                                      int64_t claim_ns) {
  const int64_t now = client::NowNanos();
  auto call =
      client_->StartReserve(request, {}, {}, from, to, now + claim_ns, now + options_.deadline_ns);
  return std::move(client_->Wait(call));
}

client::BeginResult Engine::Begin(const client::Claim& claim) {
  auto call = client_->StartBegin({&claim, 1}, client::NowNanos() + options_.deadline_ns);
  client::BeginResult result = std::move(client_->Wait(call));
  if (result.code == client::Code::kOk) result.code = result.codes.at(0);
  return result;
}

Copied Engine::Load(const client::Claim& claim, uint64_t seed) {
  client::BeginResult begun = Begin(claim);
  Copied copied{.code = begun.code};
  if (begun.code != client::Code::kOk) return copied;
  client::Hold hold = std::move(begun.holds[0]);
  std::vector<std::byte> kv(hold.page_bytes());
  for (uint32_t i = 0; i < hold.pages(); ++i) {
    std::memset(kv.data(), 0xee, kv.size());
    if (!hold.Load(i, Split(std::span<std::byte>(kv)))) {
      ++copied.refused;
    } else if (kv == PageContent(seed, hold.first_block() + i, options_.shard, kv.size())) {
      ++copied.good;
    } else {
      ++copied.wrong;
    }
  }
  auto end = client_->StartEnd(std::move(hold), client::NowNanos() + options_.deadline_ns);
  copied.code = client_->Wait(end).code;
  return copied;
}

Copied Engine::Store(const client::Claim& claim, uint64_t seed) {
  client::BeginResult begun = Begin(claim);
  Copied copied{.code = begun.code};
  if (begun.code != client::Code::kOk) return copied;
  client::Hold hold = std::move(begun.holds[0]);
  for (uint32_t i = 0; i < hold.pages(); ++i) {
    const std::vector<std::byte> kv =
        PageContent(seed, hold.first_block() + i, options_.shard, hold.page_bytes());
    ++(hold.Store(i, Split(std::span<const std::byte>(kv))) ? copied.good : copied.refused);
  }
  auto end = client_->StartEnd(std::move(hold), client::NowNanos() + options_.deadline_ns);
  copied.code = client_->Wait(end).code;
  return copied;
}

client::SettleResult Engine::Settle(uint64_t request, uint64_t host_tokens,
                                    uint64_t failed_tokens) {
  client::Used used;
  used.host = host_tokens;
  used.failed = failed_tokens;
  auto call = client_->StartSettle(request, used, client::NowNanos() + options_.deadline_ns);
  return std::move(client_->Wait(call));
}

// A request that the engine gives up before any page was touched.
void Engine::RunGivenUp(uint64_t seed, uint64_t tokens, int64_t claim_ns) {
  const uint64_t request = next_request_++;
  const std::vector<uint32_t> all = Tokens(seed, tokens);
  auto probe = client_->StartProbe({.tokens = all, .segments = {}, .extras = {}},
                                   client::NowNanos() + options_.deadline_ns);
  client_->Wait(probe);
  client::AcquireResult acquired = Acquire(request, seed, tokens, claim_ns);
  auto await = client_->StartAwait(acquired.ticket, client::NowNanos(),
                                   client::NowNanos() + options_.deadline_ns);
  const client::AwaitResult& more = client_->Wait(await);  // without a ticket it is told so
  if (more.claim) acquired.claim = more.claim;
  if (acquired.claim) client_->Abort({&acquired.claim, 1});
  Settle(request, 0);
}

bool Engine::Restart(uint64_t seed, uint64_t tokens, int64_t claim_ns) {
  const client::AcquireResult acquired = Acquire(next_request_++, seed, tokens, claim_ns);
  if (!acquired.claim) return false;
  const uint64_t old = client_->session();
  {
    const client::BeginResult begun = Begin(acquired.claim);
    client_.reset();
  }
  MakeClient(old);
  return client_->WaitAttached(client::NowNanos() + options_.deadline_ns);
}

// What has come by the ticket, at most half a deadline later.
void Engine::Await(client::AcquireResult* acquired) {
  const int64_t now = client::NowNanos();
  auto call = client_->StartAwait(acquired->ticket, now + options_.deadline_ns / 2,
                                  now + options_.deadline_ns);
  const client::AwaitResult& more = client_->Wait(call);
  if (more.code != client::Code::kOk || !more.claim) return;
  acquired->claim = more.claim;
  acquired->blocks = more.blocks;
}

Cycle Engine::Run(uint64_t seed, uint64_t tokens, const RunOptions& run) {
  Cycle cycle;
  const uint64_t request = next_request_++;
  client::AcquireResult acquired = Acquire(request, seed, tokens, run.claim_ns, run.intent);
  if (acquired.ticket != 0) Await(&acquired);
  cycle.hit_blocks = acquired.blocks;
  bool all_good = true;
  if (acquired.claim) {
    const Copied loaded = Load(acquired.claim, seed);
    cycle.loaded = loaded.good;
    cycle.wrong = loaded.wrong;
    all_good = loaded.code == client::Code::kOk && loaded.good == acquired.blocks;
  }
  const auto full_blocks = static_cast<uint32_t>(tokens / options_.block_tokens);
  const client::ReserveResult reserved =
      Reserve(request, all_good ? acquired.blocks : 0, full_blocks, run.claim_ns);
  if (reserved.claim) {
    const Copied stored = Store(reserved.claim, seed);
    if (stored.code == client::Code::kOk) cycle.stored = stored.good;
  }
  const uint64_t used = all_good ? uint64_t{acquired.blocks} * options_.block_tokens : 0;
  cycle.settled = Settle(request, used).code == client::Code::kOk;
  return cycle;
}

}  // namespace pando::e2e
