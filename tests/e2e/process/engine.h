// A stand-in engine: one Client, prompts and pages that prove themselves (stamp.h). It never trusts
// a byte: a load counts as good only if every byte is what the prompt's seed says. One thread.
#ifndef PANDO_TESTS_E2E_PROCESS_ENGINE_H_
#define PANDO_TESTS_E2E_PROCESS_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "radix/base/steps.h"
#include "tests/e2e/process/stamp.h"

namespace pando::e2e {

inline constexpr int64_t kClaimNanos = 10'000'000'000;  // how long a claim stands

struct EngineOptions {
  std::string socket;
  std::string replica_key = "replica";
  client::Role role = client::Role::kBoth;
  uint32_t shard = 0;
  uint32_t world_size = 1;
  uint32_t block_tokens = kBlockTokens;
  uint64_t page_bytes = 65536;
  int64_t deadline_ns = 2'000'000'000;  // of each call
  std::string model = "stand-in";
  StepListener* steps = nullptr;
};

struct Copied {
  client::Code code = client::Code::kLost;  // of Begin, or else of End
  uint32_t good = 0, wrong = 0,
           refused = 0;  // pages; wrong: verified by Pando but not the right bytes
};

struct RunOptions {
  int64_t claim_ns = kClaimNanos;
  client::Intent intent = client::Intent::kLook;
};

struct Cycle {  // one request from acquire to settle
  uint32_t hit_blocks = 0, loaded = 0, stored = 0, wrong = 0;
  bool settled = false;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options);

  client::Client& client() { return *client_; }
  bool Attach(int64_t deadline) { return client_->WaitAttached(deadline); }

  client::AcquireResult Acquire(uint64_t request, uint64_t seed, uint64_t tokens, int64_t claim_ns,
                                client::Intent intent = client::Intent::kLook);
  client::ReserveResult Reserve(uint64_t request, uint32_t from, uint32_t to, int64_t claim_ns);
  Copied Load(const client::Claim& claim, uint64_t seed);
  Copied Store(const client::Claim& claim, uint64_t seed);
  client::SettleResult Settle(uint64_t request, uint64_t host_tokens, uint64_t failed_tokens = 0);
  // Acquire, await what somebody else makes, load and verify, store what is missing, settle. Role
  // kBoth.
  Cycle Run(uint64_t seed, uint64_t tokens, const RunOptions& run = {});
  // Probe, acquire, abort, settle: a request that was given up.
  void RunGivenUp(uint64_t seed, uint64_t tokens, int64_t claim_ns = kClaimNanos);
  // Loses its session in the middle of a load, as when an engine builds its connector anew in the
  // same process, and attaches in its place.
  bool Restart(uint64_t seed, uint64_t tokens, int64_t claim_ns = kClaimNanos);

 private:
  void MakeClient(uint64_t replaces);
  void Await(client::AcquireResult* acquired);
  client::BeginResult Begin(const client::Claim& claim);

  EngineOptions options_;
  std::unique_ptr<client::Client> client_;
  uint64_t next_request_ = 1;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_PROCESS_ENGINE_H_
