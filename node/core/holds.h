// Holds: the one table of leases, reservations, holds and quarantine, and the only place that gives
// memory back.
//
//                 Lease / Reserve            Begin (a shard)              End (that shard)
//   no claim ────────────────────► claim ───────────────────► hold ──────────────────────► released
//                                    │ deadline, Abort,          │ goes on: the claim's end does
//                                    │ a session lost            │ not touch it (quarantine)
//                                    ▼                           ▼
//                                  over, nothing to give      End, or the holder's process is gone
//
//   part of a claim (one a shard)   idle ──Begin──► holding ──End──► ended
//
// Invariants:
//  1. A claim stands until every shard has ended, its deadline, Abort, or its replica loses a
//     session; then it is over, once. Only while it stands can a shard begin or commit. What was
//     read under a hold is right, also when the claim is over.
//  2. A hold ends only with its holder's End, or when the holder's process is gone or says so
//     (`replaces`). A deadline ends a claim, never a hold (FAULTS B2).
//  3. A lease's path stays pinned until it is over and its last hold has ended; a reservation is
//     finished when it is over: pages that are held then are quarantined until their hold ends.
//  4. Each shard begins a claim at most once and ends it at most once.
//  5. What a load brought is reported to the ledger when its claim is over, and again when its
//     last hold has ended after that.
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_HOLDS_H_
#define PANDO_NODE_CORE_HOLDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_map.h"
#include "node/core/context.h"
#include "node/core/held_pages.h"
#include "node/core/ledger.h"
#include "node/core/problem.h"
#include "node/core/tickets.h"

namespace pando {

// On whose behalf a claim is made, and until when it stands.
struct ClaimTerms {
  RequestRef request;  // `request.replica` is set even if there is no request
  SpaceId space;
  Nanos deadline = 0;
};

// The session that a Begin or End comes from.
struct Worker {
  ReplicaNumber replica;
  SessionId session;
  ShardId shard;
};

class Holds {
 public:
  Holds(CoreContext* context, Ledger* ledger, Tickets* tickets, const NodeCore::Options& options);
  ~Holds();

  // A claim on the matched blocks. nullopt: no memory for the index, nothing was changed.
  std::optional<ClaimId> Lease(const ClaimTerms& terms, const Match& match);
  // Marks the matched blocks as used, without a claim.
  void Touch(const Match& match);
  // A claim on the blocks of a reservation that the cache has made.
  ClaimId Reserve(const ClaimTerms& terms, const Reservation& reservation);

  // `room`: how many pages the item may name; if they are more, nothing is held and the claim
  // stands.
  void Begin(const Worker& worker, ClaimId claim, uint64_t room, BeginItem* item);
  // What is malformed in an End for a hold of this worker, if anything. Changes nothing.
  std::optional<Problem> CheckEnd(const Worker& worker, const EndItem& item) const;
  // `too_late`: the message's deadline has passed; the hold ends, and nothing comes of it.
  Code End(const Worker& worker, const EndItem& item, bool too_late);
  // Ends a lease that no shard has begun; one that was begun goes on.
  void GiveUpIdle(ReplicaNumber replica, ClaimId claim);
  // False if the replica has no such claim.
  bool Abort(ReplicaNumber replica, ClaimId claim);

  // Ends the claims whose deadline has come.
  void Expire();
  // Ends all claims of a replica: it has lost a session, so no block of theirs can be completed.
  void EndClaimsOf(ReplicaNumber replica);
  // Ends all holds of a session whose process can touch nothing any more. Its claims are over.
  void ReleaseAllOf(ReplicaNumber replica, SessionId session);
  bool HoldsAny(ReplicaNumber replica, SessionId session) const;
  // All processes of the replica have gone.
  void Forget(ReplicaNumber replica);

  // What keeps the replica from another claim, if anything.
  std::optional<Problem> CheckRoom(ReplicaNumber replica) const;
  // It holds more memory without a claim than one replica may.
  bool OverQuarantineCap(ReplicaNumber replica) const;

  Nanos next_deadline() const;
  uint64_t leases() const { return leases_; }
  uint64_t reservations() const { return reservations_; }
  uint64_t holds() const { return holds_; }
  uint64_t quarantined_bytes() const { return quarantined_.bytes(); }
  // What others do with the same cache: pages they hold, pages they still write, paths they pin.
  struct Others {
    absl::flat_hash_set<PageId> held;
    uint64_t writing = 0, pinning = 0;
  };
  std::string SelfCheck(Others others) const;

 private:
  struct Part {  // one shard's share of a claim
    enum class State : uint8_t { kIdle, kHolding, kEnded } state = State::kIdle;
    SessionId session;            // that holds
    BlockCount good;              // of a load: blocks before the first bad one
    std::vector<PageView> pages;  // while holding
  };
  struct ReplicaClaims;
  struct Claim {
    ClaimId id;
    ClaimTerms terms;
    bool store = false;
    bool over = false;
    uint32_t holding = 0, ended = 0;  // parts in that state
    Reservation reservation;          // a lease: path, from 0 to the matched blocks
    std::vector<Part> parts;          // by shard
    ReplicaClaims* owner = nullptr;
    Claim *newer = nullptr, *older = nullptr;  // in the owner's list
  };
  struct ReplicaClaims {
    Claim *newest = nullptr, *oldest = nullptr;
    uint64_t count = 0;
    uint64_t pages_held = 0;  // by all holds, of claims that stand or are over
    HeldPages quarantined;
  };

  Claim* Find(ReplicaNumber replica, ClaimId id) const;
  Part* FindHolding(Claim* claim, const Worker& worker) const;
  Claim* Add(const ClaimTerms& terms, bool store, const Reservation& reservation);
  void FillItem(const Claim& claim, const Part& part, BeginItem* item) const;
  void EndLoad(const Claim& claim, const EndItem& item, ShardId shard, Part* part);
  void DropBad(const Claim& claim, const EndItem& item, ShardId shard, const Part& part);
  Code EndStore(const Claim& claim, const EndItem& item, ShardId shard, const Part& part);
  void Release(Claim* claim, Part* part);
  void EndClaim(Claim* claim);
  void ReportLoad(const Claim& claim);
  void Retire(Claim* claim);
  Bytes StrideOf(const Claim& claim) const;
  std::string CheckClaims(absl::flat_hash_set<PageId>* held) const;
  std::string CheckCache(const Others& others) const;

  CoreContext* context_;
  Ledger* ledger_;
  Tickets* tickets_;
  uint64_t quarantine_cap_;
  uint64_t next_claim_;
  absl::flat_hash_map<ClaimId, std::unique_ptr<Claim>> claims_;
  absl::node_hash_map<ReplicaNumber, ReplicaClaims> replicas_;
  absl::btree_set<std::pair<Nanos, ClaimId>> deadlines_;  // of the claims that stand
  std::vector<std::unique_ptr<Claim>> spare_;             // to be used again, with their memory
  uint64_t leases_ = 0, reservations_ = 0, holds_ = 0;
  HeldPages quarantined_;  // of all replicas
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_HOLDS_H_
