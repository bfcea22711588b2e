// TransferEngine: moves pages from the memory of one node to that of another, by pulls.
//
//   requester                                     owner (its core compared all tokens)
//   Pull{grant, pages, to} ──── request ────────► Offer{grant, pages}
//     receive straight into `to`  ◄── a page each ── sent straight from the slab
//     checksum ─► PullPages{arrived | bad | failed}
//   PullEnded                                     Revoke{grant} ─► GrantEnded
//
// Three implementations: loopback/ (in one process, deterministic, no thread), ucx/ (active
// messages) and process/ (the same in a process of its own: a node's). None decides anything: what
// is granted, pulled, retried is node/core's. Admission, OfferTable and PullTable are what they do
// alike.
//
// Invariants, whatever the other side does or fails to do:
//  1. Owner's rule: the engine reads an offered page only between Offer and GrantEnded; GrantEnded
//     comes once, after Revoke, when no send of that grant can touch a page any more.
//  2. Requester's rule: the engine writes a destination only until that page's one outcome
//     (PullPages); PullEnded comes once, after the outcomes of all its pages.
//  3. A page is kArrived only if its length is the one asked for and its checksum the one given.
//  4. A grant serves only who knows its id, and each page of it only as often as it is offered: an
//     unknown grant, page, length or pull is refused (an answer, counted), never ignored.
//  5. A pull's deadline stops it from starting anything; pages whose receive had been posted keep
//     their outcome until the transport is done with them. A connection that makes no progress for
//     `stall_timeout` while something is under way is closed, which ends all that ran on it; so is
//     one whose peer asks and does not read the refusals.
//  6. Nothing blocks: calls queue, events are taken by TakeEvents after `notify`. The queue is
//     bounded by what is open: above `limits.offers` an offer is not taken; above `limits.pulls` a
//     pull ends at once, kOverloaded, with all its pages kFailed. Both are counted. Open is what
//     has started and whose end (GrantEnded, PullEnded) has not been taken yet.
//
// Threads: all calls and TakeEvents on one thread, the owner's; `notify` comes from any.
#ifndef PANDO_TRANSFER_ENGINE_H_
#define PANDO_TRANSFER_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "radix/base/ids.h"

namespace pando {

// 128 random bits, drawn by the owner's node: who knows it may pull what it grants.
struct GrantId {
  uint64_t high = 0, low = 0;
  friend bool operator==(const GrantId&, const GrantId&) = default;
  template <class H>
  friend H AbslHashValue(H hash, const GrantId& id) {
    return H::combine(std::move(hash), id.high, id.low);
  }
};

// ---- Owner

struct OfferedPage {
  std::span<const std::byte> bytes;  // in a slab; stays mapped and unchanged until GrantEnded
};
struct Offer {
  GrantId grant;
  std::vector<OfferedPage> pages;  // a pull names them by index
};

// ---- Requester

struct PullPage {
  uint32_t index = 0;       // in the offer
  uint64_t checksum = 0;    // formula 1 (transfer/memory/page_copy.h), as the owner told it
  std::span<std::byte> to;  // in a slab; all of it is written or the page is not kArrived
};
struct Pull {
  uint64_t id = 0;      // the caller's, never used twice
  std::string address;  // the owner's TransferEngine::address()
  GrantId grant;
  Nanos deadline = 0;  // absolute, CLOCK_MONOTONIC
  std::vector<PullPage> pages;
};

// ---- Events

enum class PageOutcome : uint8_t {
  kArrived,  // verified, in place
  kBad,      // came, and its checksum is another
  kFailed,   // refused, cut off, past the deadline; its bytes are undefined
};
struct PullPages {  // outcomes since the last event of this pull
  uint64_t pull = 0;
  struct Page {
    uint32_t position = 0;  // in Pull::pages
    PageOutcome outcome = PageOutcome::kFailed;
  };
  std::vector<Page> pages;
};
enum class PullStatus : uint8_t {
  kOk,
  kRefused,
  kUnreachable,
  kDeadline,
  kCancelled,
  kOverloaded,
  kTransferLost,  // the process that moves pages here ended, or there is none: not the peer's fault
};
struct PullEnded {
  uint64_t pull = 0;
  PullStatus status = PullStatus::kOk;  // kOk: every page came, good or bad
  uint64_t bytes = 0;                   // that arrived
  Nanos took = 0;                       // from its first request to its last page
  bool warm = false;                    // its connection was there: `took` is the pull's alone
};
struct GrantEnded {
  GrantId grant;
  uint64_t pages_sent = 0;  // whose send completed well
};
using TransferEvent = std::variant<PullPages, PullEnded, GrantEnded>;

struct TransferCounters {  // since start
  uint64_t pulls = 0, pages_pulled = 0, bytes_pulled = 0, pages_bad = 0, pages_failed = 0;
  uint64_t pages_sent = 0, bytes_sent = 0;
  uint64_t refused_grants = 0, refused_pages = 0;    // asked of us
  uint64_t messages_refused = 0;                     // malformed, foreign, repeated: dropped
  uint64_t connections = 0, connections_closed = 0;  // of all time; closed for whatever reason
  uint64_t connections_stalled = 0;                  // of these, closed by us without progress
  uint64_t connections_unread = 0;                   // of these, whose other side reads no answers
  uint64_t connections_refused = 0;                  // never made: above the limit
  uint64_t offers_refused = 0, pulls_refused = 0;    // our own, above the limits
  uint64_t registrations_failed = 0;                 // of extents; their pages go all the same
  uint64_t restarts = 0;                             // of the transfer process, where there is one
  friend bool operator==(const TransferCounters&, const TransferCounters&) = default;
};

struct TransferLimits {
  uint32_t pages_in_flight = 32;        // of one pull: asked for and not yet over
  uint32_t peer_pages_in_flight = 256;  // of all pulls from one peer; and sent to one peer at once
  uint32_t pulls = 4096;                // open at once
  uint32_t offers = 16'384;             // open at once
  uint32_t connections = 1024;          // that peers made to us
  Nanos stall_timeout = 5'000'000'000;
};

class TransferEngine {
 public:
  virtual ~TransferEngine() = default;

  // Where peers reach this engine.
  virtual const std::string& address() const = 0;

  // False: too many are open; nothing was offered and no event follows.
  [[nodiscard]] virtual bool Start(Offer offer) = 0;
  // No new send of it starts; GrantEnded follows. Of an unknown grant: no effect, no event.
  virtual void Revoke(GrantId grant) = 0;

  virtual void Start(Pull pull) = 0;
  // As if its deadline had come now.
  virtual void Cancel(uint64_t pull) = 0;

  // Appends what has happened.
  virtual void TakeEvents(std::vector<TransferEvent>* events) = 0;
  virtual TransferCounters counters() const = 0;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_ENGINE_H_
