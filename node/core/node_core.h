// NodeCore: what a node decides, as a step function.
//
//   Step(now, input) ──► outputs
//
// Same inputs, same outputs, on every machine: no clock, no randomness, no thread, no I/O.
// node/runtime feeds it from sockets, pidfds and timers and carries its outputs out; tests/sim
// feeds it from a seed.
//
// It is a router over small machines: Replicas (who is attached), Holds (leases, reservations,
// holds and quarantine: the only place that gives memory back), Ledger (the account), PrefixCache
// (tree and pages).
//
// Threads: owner thread only.
#ifndef PANDO_NODE_CORE_NODE_CORE_H_
#define PANDO_NODE_CORE_NODE_CORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "node/core/account.h"
#include "node/core/messages.h"
#include "node/core/peer_messages.h"
#include "radix/base/ids.h"
#include "radix/base/steps.h"
#include "radix/prefix_cache.h"

namespace pando {

// ---- Inputs
// ----------------------------------------------------------------------------------------

struct SessionOpened {
  SessionId session;  // chosen by the caller, never used twice
};
struct SessionRequest {
  SessionId session;
  uint64_t serial = 0;  // comes back with the answer
  Nanos deadline = 0;   // absolute; 0: none. Past it, the request is not executed
  RequestBody body;
};
struct SessionClosed {  // the socket ended
  SessionId session;
};
struct ProcessExited {  // the session's pidfd fired: nobody can touch what it held any more
  SessionId session;
};
struct ExtentReady {  // populated, to be used
  ExtentId extent;
};
// Refused before there was a request to step with; it is only counted.
struct RefusedOutside {
  enum class What : uint8_t {
    kConnection,            // no room for another session
    kFrameTooLong,          // its length alone
    kFrameMalformed,        // no ClientFrame
    kFrameTooManyMessages,  // more than limits::kMessagesPerFrame
    kFrameCutShort,         // the connection ended within it
    kMessageMalformed,      // a field or column that says nothing, an impossible deadline
    kMessageWrongPidfd,     // an attach without its sender's own pidfd
    kMessageNoDescriptor,   // this process has no descriptor left for it
    kMessageAnswerTooLong,  // served, but what it came to fits no frame
  };
  static constexpr size_t kKinds = 9;
  What what = What::kConnection;
};
struct DrainRequested {};  // no new attach, acquire, reserve; what runs may end
struct Tick {};            // only time passes
// Those of peers are in peer_messages.h.

using Input = std::variant<SessionOpened, SessionRequest, SessionClosed, ProcessExited, ExtentReady,
                           RefusedOutside, DrainRequested, Tick, ClusterStarted, PeersChanged,
                           PeerAsks, FeedAsked, FeedReady, FeedDropped, PeerAnswered, FeedArrived,
                           FeedEnded, TransferHappened, TransferRuns>;

// ---- Outputs
// ---------------------------------------------------------------------------------------

struct SendAnswer {
  SessionId session;
  uint64_t serial = 0;
  Answer answer;
};
struct CloseSession {  // after its queued answers have gone; SessionClosed must still come
  SessionId session;
  std::string reason;
};
// Once for each session that was opened: it is closed and holds nothing. No more is to be said of
// it, and its process need not be watched on its behalf.
struct SessionForgotten {
  SessionId session;
};
struct LogLine {  // one decision, no tokens, no user data beyond names
  enum class Level : uint8_t { kDebug, kInfo, kWarning, kError } level = Level::kInfo;
  std::string event;  // "replica.attached"
  std::vector<std::pair<std::string, std::string>> fields;
};
using Output =
    std::variant<SendAnswer, CloseSession, SessionForgotten, LogLine, AnswerPeer, SendFeed, EndFeed,
                 AskPeer, OpenFeed, CloseFeed, OfferPages, RevokeOffer, StartPull, CancelPull>;

// ---- Reads
// -----------------------------------------------------------------------------------------

struct RefusedByCode {
  uint64_t invalid = 0, limit = 0, unknown = 0, unavailable = 0;

  void Add(Code code);  // no effect for kOk and kExpired, which are no refusals
  uint64_t total() const { return invalid + limit + unknown + unavailable; }
};

struct CoreCounters {  // since start
  uint64_t steps = 0;
  uint64_t acquires = 0, awaits = 0, probes = 0, reserves = 0, begins = 0, ends = 0, aborts = 0,
           settles = 0;
  RefusedByCode attach_refused;
  RefusedByCode requests_refused;  // all but attaches; each claim of a Begin, each item of an End
  std::array<uint64_t, RefusedOutside::kKinds> refused_outside{};  // by What
  uint64_t requests_expired = 0, claims_expired = 0;
  uint64_t pages_loaded = 0, pages_stored = 0;
  uint64_t pages_bad = 0;  // a load found it bad and it was dropped: each page once
  // Of stores that failed, came too late or whose process died: begun by a shard, never committed.
  uint64_t pages_given_up = 0;
  uint64_t reserve_full = 0, reserve_in_flight = 0;
  uint64_t quarantine_refused = 0;  // claims refused: the replica is over its quarantine cap
  uint64_t tickets = 0;
  // As an owner, of pages that peers asked for.
  uint64_t grants = 0, grants_missed = 0, grants_busy = 0, grants_refused = 0, grants_expired = 0;
  uint64_t peer_pages_sent = 0, peer_pages_called_bad = 0;
  // As a requester.
  uint64_t fetches = 0, fetches_declined = 0, fetches_full = 0, fetches_expired = 0;
  uint64_t peer_pages_stored = 0;
  uint64_t feeds_broken = 0;  // a gap, a wrong digest, a malformed piece: taken anew
};

struct SpaceStatus {
  SpaceId space;
  SpaceShape shape;  // identity is left empty
  std::vector<std::pair<std::string, std::string>> fields;
  SpaceStats stats;
  Account account;
};

struct CoreStatus {
  PageCounts pages;  // of all spaces
  uint64_t leases = 0, reservations = 0, holds = 0, tickets = 0, grants = 0;
  uint64_t requests = 0;  // open
  uint64_t sessions = 0, replicas = 0;
  uint64_t extents = 0, extents_unowned = 0;
  // Pages that somebody still holds though the claim is over, each once, however many hold it: they
  // can be neither evicted nor given to anything else. Never more than the slab.
  uint64_t quarantined_bytes = 0;
  bool draining = false;
  CoreCounters counters;
  Account account;
  std::vector<SpaceStatus> spaces;
  ClusterStatus cluster;
};

class Replicas;
class Holds;
class Ledger;

class NodeCore {
 public:
  struct Options {
    PrefixCache::Options cache;
    Bytes slab_bytes;  // what the host slab will be, for the quarantine cap
    // Claims are numbered from here on. A node draws it anew in each life, below 2^63, so that a
    // claim of another life is unknown instead of somebody else's (FAULTS D2, G3).
    ClaimId first_claim{1};
  };

  // `steps` may be null; it must outlive the core.
  explicit NodeCore(const Options& options, StepListener* steps = nullptr);
  ~NodeCore();
  NodeCore(const NodeCore&) = delete;
  NodeCore& operator=(const NodeCore&) = delete;

  // One step; appends to `outputs`. `now` never goes back (an earlier one counts as the last one
  // seen).
  void Step(Nanos now, Input input, std::vector<Output>* outputs);

  // When Tick is due at the latest; INT64_MAX: never.
  Nanos next_deadline() const;

  // Ages are as of `now`; 0: as of the last step.
  CoreStatus status(Nanos now = 0) const;
  const PrefixCache& cache() const;
  // The names of the peers that told that they hold the block of this name (RunInfo::told_key).
  std::vector<std::string> PeersHolding(uint64_t key) const;
  // Recounts everything: page states against holds, pins against claims. Empty, or what is broken.
  std::string SelfCheck() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_NODE_CORE_H_
