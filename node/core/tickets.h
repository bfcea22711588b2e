// Tickets: who is computing which blocks, and who waits for them.
//
//   replica A   acquire(compute) ── nobody makes the rest ──► computation: A makes blocks [m, n)
//   replica B   acquire ── the next block is A's ──► ticket; await ──► answered when A's last
//               store of them is over, A failed, ended its request, or went; or at its time
//
// A computation is a range of block keys (the low halves of chain keys) in one index: a lookup of
// one key says who makes it. A wrong match of such a key costs a wait, never a byte.
//
// Invariants:
//  1. A computation ends with its range's last store, a store of it that brought nothing or found
//     no room, its request, its replica, or its deadline; then its keys are out of the index. Peers
//     are told of its beginning and end.
//  2. A ticket ends with its request, its replica, its deadline, or an answer that says that
//     nothing more is being made. Each await is answered once.
//  3. Who has begun never waits: a replica is never told to wait for itself.
//
// It decides nothing about claims: the router answers. Owner thread only.
#ifndef PANDO_NODE_CORE_TICKETS_H_
#define PANDO_NODE_CORE_TICKETS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "node/core/feeds.h"
#include "node/core/ledger.h"
#include "node/core/limits.h"

namespace pando {

class Tickets {
 public:
  // `first`: the first ticket's id; another one in each life of the node.
  Tickets(Feeds* feeds, uint64_t first) : feeds_(feeds), next_(first) {
    makers_.reserve(limits::kBlocksComputing);  // it never grows in the middle of a step
  }

  struct Wait {
    SessionId session;
    uint64_t serial = 0;
    Nanos until = 0;
  };
  struct Ticket {
    RequestRef request;
    SpaceId space;
    ClaimId lease;        // the acquire's, or the last one that an await made; 0: none
    uint32_t blocks = 0;  // that it covers
    bool compute = false;
    Nanos deadline = 0;
    ReplicaNumber maker;      // whom it waits for: a replica, a fetch or a peer
    uint32_t maker_from = 0;  // the first block that this maker makes
    uint32_t maker_to = 0;    // of a fetch: where it ends
    uint32_t fetches = 0;     // begun for it
    std::optional<Wait> wait;
  };

  // `request` computes the blocks with these keys, of which `to` - 1 is the last, until `deadline`.
  // Keys that somebody makes already stay his; those beyond limits::kBlocksComputing of all are
  // nobody's.
  void Compute(const RequestRef& request, uint32_t to, std::vector<uint64_t> keys, Nanos deadline);
  // Who makes that block, if anybody but `except` does.
  std::optional<ReplicaNumber> MakerOf(uint64_t key, ReplicaNumber except) const;
  // A store that the request had reserved up to block `to` is over. `whole`: all of it was
  // committed.
  void StoreEnded(const RequestRef& request, uint32_t to, bool whole);
  // The request will not make its blocks: they found no room, or it is over.
  void StopComputing(const RequestRef& request);

  uint64_t Issue(const Ticket& ticket);
  Ticket* Find(ReplicaNumber replica, uint64_t id);
  // From now on it waits; a maker that moves, and time, make it due.
  void SetWait(uint64_t id, const Wait& wait);
  // Another maker, of the blocks from `from` on; a fetch makes those before `to`, and was begun for
  // it.
  void SetMaker(uint64_t id, ReplicaNumber maker, uint32_t from, std::optional<uint32_t> to);
  void SetLease(uint64_t id, ClaimId lease, uint32_t blocks);
  void EndWait(uint64_t id);
  void Close(uint64_t id);

  // The request is over: nothing of it is computed; returns the waits that are owed an answer.
  std::vector<Wait> RequestOver(const RequestRef& request);
  // The same for all requests of a replica.
  std::vector<Wait> ReplicaOver(ReplicaNumber replica);

  // Something of this maker's has come, or it makes nothing any more: who waits for it is due.
  void Moved(ReplicaNumber maker);
  // Nobody may wait any longer: all that wait are due.
  void AllDue();
  // A ticket to look at again: its maker has moved or its time has come. Each once, in order.
  std::optional<uint64_t> NextDue(Nanos now);
  const Ticket& ticket(uint64_t id) const { return tickets_.at(id); }

  Nanos next_deadline() const;
  uint64_t count() const { return tickets_.size(); }
  uint64_t computations() const { return computations_.size(); }
  std::string SelfCheck() const;

 private:
  // Of one opening of a request.
  using RequestKey = std::pair<ReplicaNumber, uint64_t>;
  struct Computation {
    RequestRef request;
    uint32_t to = 0;
    std::vector<uint64_t> keys;  // those that are in the index as its own
    Nanos deadline = 0;
  };
  using Computations = std::map<RequestKey, Computation>;

  static RequestKey KeyOf(const RequestRef& request) { return {request.replica, request.serial}; }
  void End(Computations::iterator computation);
  Nanos DueAt(const Ticket& ticket) const;

  Feeds* feeds_;
  uint64_t next_;
  std::map<uint64_t, Ticket> tickets_;
  std::map<RequestKey, uint64_t> by_request_;
  std::set<std::pair<ReplicaNumber, uint64_t>> waiting_;  // by maker
  std::set<std::pair<Nanos, uint64_t>> times_;            // of tickets: wait's end, or its own
  std::set<uint64_t> due_;
  Computations computations_;
  std::set<std::pair<Nanos, RequestKey>> computation_deadlines_;
  absl::flat_hash_map<uint64_t, ReplicaNumber> makers_;  // of a block's key
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_TICKETS_H_
