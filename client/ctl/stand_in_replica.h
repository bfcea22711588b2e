// A stand-in for one inference replica: it does all that an engine does with its cache, except for
// computing. One scheduler session and one worker session for each shard, joined by a key.
//
//   acquire ─► await what another makes ─► begin ─► load pages into its own KV, compare every byte
//   ─► end
//           ─► "compute" what is missing ─► reserve ─► begin ─► store ─► end ─► settle
//
// It says at acquire that it is going to compute what is missing, so that others wait for it.
//
// All full blocks of a prompt are stored, shared or not: a replica does not know what others will
// ask for. A node that does not answer makes requests misses; before each request the replica waits
// for one that has gone, every time half as long as the time before. One thread.
#ifndef PANDO_CLIENT_CTL_STAND_IN_REPLICA_H_
#define PANDO_CLIENT_CTL_STAND_IN_REPLICA_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/ctl/engine_kv.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/replay_result.h"

namespace pando::ctl {

struct ReplicaOptions {
  std::string socket;  // of the node
  std::string key;     // names the replica; no other live one may have it
  uint32_t shards = 1;
  uint32_t block_tokens = 16;
  uint64_t page_bytes = 4096;         // of one block and shard
  uint64_t prefill_tokens_per_s = 0;  // told to the node; 0: not told
  uint64_t prefill_speedup = 0;       // computing takes that time over this; 0: no time
  int64_t await_ns = 0;               // for what another makes; 0: it is not awaited
  uint64_t seed = 0;                  // part of the model's name: contents depend on it
  int64_t call_timeout_ns = 5'000'000'000;
  int64_t patience_ns = 5'000'000'000;  // first wait for a node that has gone; twice that in all
};

// The model that its sessions name, which tells its space from others'.
std::string ModelName(uint64_t seed);

class StandInReplica {
 public:
  // Once `interrupt` has come, nothing is waited for any more; it outlives this.
  StandInReplica(const ReplicaOptions& options, Interrupt* interrupt);

  // UNAVAILABLE if some session is not attached at the deadline, FAILED_PRECONDITION if the node
  // refuses one, CANCELLED if interrupted; the message says why.
  absl::Status WaitAttached(int64_t deadline_ns);

  // Plays one request with that id (not 0, never used before). `chain` is BlockChain(tokens).
  Outcome Play(uint64_t request, std::span<const uint32_t> tokens, std::span<const uint64_t> chain);

 private:
  struct Lease {
    client::Claim claim;
    uint32_t blocks = 0;
    bool open = false;  // the node has the request, or may have it: to be settled
  };

  int64_t CallDeadline() const;
  template <class Result>
  Result& Wait(client::Client& session, client::Call<Result>& call);
  // Nobody waits for a single session of the replica: the node serves it when all are there.
  void WaitForNode();
  Lease Acquire(uint64_t request, std::span<const uint32_t> tokens, Outcome* outcome);
  // The lease with what comes of the ticket.
  Lease Await(uint64_t ticket, const Lease& lease, Outcome* outcome);
  // Takes as long as computing so many tokens.
  void SpendPrefill(uint64_t tokens);
  // Leading blocks that were loaded and verified, in all shards.
  uint64_t Load(const Lease& lease, std::span<const uint64_t> chain, Outcome* outcome);
  uint64_t LoadShard(uint32_t shard, const Lease& lease, std::span<const uint64_t> chain,
                     Outcome* outcome);
  void Store(uint64_t request, uint32_t from, std::span<const uint64_t> chain, Outcome* outcome);
  void StoreShard(uint32_t shard, const client::Claim& claim, std::span<const uint64_t> chain,
                  Outcome* outcome);
  void Settle(uint64_t request, Outcome* outcome);
  // A hold that may be used, or one without pages; then the claim is given back.
  client::Hold Begin(uint32_t shard, const client::Claim& claim, Outcome* outcome);

  ReplicaOptions options_;
  Interrupt* interrupt_;
  int64_t patience_ns_;
  std::unique_ptr<client::Client> scheduler_;
  std::vector<std::unique_ptr<client::Client>> workers_;  // by shard
  EngineKv kv_;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_STAND_IN_REPLICA_H_
