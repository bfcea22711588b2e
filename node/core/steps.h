// The named steps of the core (radix/base/steps.h). Each is reached at exactly one place in the
// code. Immutable.
#ifndef PANDO_NODE_CORE_STEPS_H_
#define PANDO_NODE_CORE_STEPS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace pando {

enum class CoreStep : uint8_t {
  kSessionOpened,      // session.opened: a connection exists, nothing is attached yet
  kAttachAccepted,     // attach.accepted: the session has its place in its replica
  kAttachRefused,      // attach.refused
  kSessionReplaced,    // session.replaced: its process attached anew and let go of all it held
  kReplicaComplete,    // replica.complete: all its sessions are there and its space is known
  kAcquireMatched,     // acquire.matched: a prefix was found, nothing is pinned yet
  kAcquireLeased,      // acquire.leased: it is pinned and the claim stands
  kReservePlaced,      // reserve.placed: pages are reserved and the claim stands
  kReserveFull,        // reserve.full: no page could be had
  kBeginHeld,          // begin.held: from here on the shard may touch the pages
  kEndCommitted,       // end.committed: a shard's pages are committed, still held
  kEndReleased,        // end.released: a shard has said that it touches its pages no more
  kClaimFinished,      // claim.finished: every shard has ended
  kClaimExpired,       // claim.expired: its deadline came first
  kClaimAborted,       // claim.aborted
  kClaimLost,          // claim.lost: its replica lost a session
  kQuarantineEntered,  // quarantine.entered: a claim is over while shards still hold its pages
  kQuarantineLeft,     // quarantine.left: the last of them has let go or is gone
  kSessionClosed,      // session.closed
  kProcessExited,      // process.exited: what it held is given back
  kReplicaGone,        // replica.gone: all its processes have gone, its key is free
  kSettleCounted,      // settle.counted
  kSettleByNode,       // settle.by_node: a request whose replica cannot settle it any more
  kExtentAdded,        // extent.added
  kDrainStarted,       // drain.started
  kTicketIssued,       // ticket.issued: what is missing is being made by somebody else
  kTicketAnswered,     // ticket.answered
  kGrantGiven,         // grant.given: pages are held for a peer
  kGrantEnded,         // grant.ended: nothing of it is under way, the pages are released
  kFetchStarted,       // fetch.started: pages are reserved, peers are asked
  kFetchPulling,       // fetch.pulling: a peer granted; the engine may write the pages
  kFetchFinished,      // fetch.finished: what came stays, who waits looks again
};

// Parallel with the enum.
std::span<const std::string_view> CoreStepNames();
std::string_view CoreStepName(CoreStep step);

}  // namespace pando

#endif  // PANDO_NODE_CORE_STEPS_H_
