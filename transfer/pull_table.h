// The requester's half of an engine without its transport: where each page of each pull is.
//
//   waiting ─ Ask ─► asked ─ Receive ─► receiving ─ Received ─► over {arrived, bad, failed}
//      └───── End ─────┴────── Refused, End ───────────────────► over {failed}
//
// End (deadline, cancel, a lost connection) takes what waits or was asked for out of the table, so
// that a page that comes late finds nothing; what is `receiving` stays until the transport says
// Received. Names on the wire: a pull by a random `wire` id, bound to its connection; a page by its
// position in the pull.
//
// Invariants:
//  1. A destination is written only between a page's Receive and its Received.
//  2. Each page has one outcome; PullEnded comes once, after those of all pages.
//
// Owner: whoever runs the engine's tables. Events go out by Flush.
#ifndef PANDO_TRANSFER_PULL_TABLE_H_
#define PANDO_TRANSFER_PULL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transfer/outbox.h"

namespace pando::transfer {

inline constexpr size_t kPageBytesMax = 8u << 20;

struct AskedPage {
  uint32_t position = 0, index = 0, length = 0;
};
struct Ask {
  uint64_t wire = 0;
  GrantId grant;
  std::vector<AskedPage> pages;
};

// What to do with a page message.
struct Landing {
  enum class Kind : uint8_t {
    kTake,   // to `to`, then Received
    kDrop,   // nobody waits for it, or not from there
    kWrong,  // asked for, and not of the length asked for: the page has failed
  } kind = Kind::kDrop;
  std::span<std::byte> to;
  uint64_t checksum = 0;
};

class PullTable {
 public:
  // Pages of a pull that goes on are told every `tell_every` at most: each time costs its caller a
  // wake-up.
  PullTable(const TransferLimits& limits, Outbox* out, Nanos tell_every = 0)
      : limits_(limits), tell_every_(tell_every), out_(out) {}

  // `wire` and `connection` are the engine's; a pull without a connection is Ended at once by it.
  // `warm`: the peer has spoken on that connection already.
  void Start(Pull pull, uint64_t wire, uint64_t connection, bool warm);

  // The next pages to ask of the connection's peer, at most `pages_max` of one pull a call;
  // nullopt: none now. Asks are made in lots, so that a message carries several.
  std::optional<Ask> AskNext(uint64_t connection, uint32_t pages_max, Nanos now);

  Landing Receive(uint64_t connection, uint64_t wire, uint32_t position, uint64_t length);
  void Received(uint64_t wire, uint32_t position, PageOutcome outcome, Nanos now);
  // The owner sends none of these; false: some of them nobody had asked for.
  bool Refused(uint64_t connection, uint64_t wire, std::span<const uint32_t> positions);

  void End(uint64_t wire, PullStatus status);
  void EndByCaller(uint64_t pull, PullStatus status);
  void EndConnection(uint64_t connection, PullStatus status);
  void EndAll(PullStatus status);
  // Ends those whose deadline has come; the next deadline, if any.
  void Expire(Nanos now);
  std::optional<Nanos> NextDeadline() const;

  // Pages of this connection that were asked for or are being received.
  uint32_t UnderWay(uint64_t connection) const;

  // Writes the events that are due; when the next will be, of what has happened already.
  std::optional<Nanos> Flush(Nanos now);

 private:
  enum class PageState : uint8_t { kWaiting, kAsked, kReceiving, kOver };
  struct State {
    Pull pull;
    uint64_t connection = 0;
    std::vector<PageState> pages;
    uint32_t next = 0;  // all before it were asked for or are over
    uint32_t under_way = 0, over = 0;
    bool warm = false, ending = false, dirty = false;
    PullStatus status = PullStatus::kOk;
    uint64_t bytes = 0;
    Nanos first_ask = 0, last_page = 0, told = 0;
    std::vector<PullPages::Page> fresh;
  };
  struct Peer {
    std::vector<uint64_t> pulls;  // wires, in order of their starts
    uint32_t under_way = 0;
  };

  void Over(uint64_t wire, State& state, uint32_t position, PageOutcome outcome);
  void Dirty(uint64_t wire, State& state);
  void Finish(uint64_t wire, State& state);
  static void Fail(State& state, PullStatus status);
  State* FindOf(uint64_t connection, uint64_t wire);

  const TransferLimits limits_;
  const Nanos tell_every_;
  Outbox* const out_;
  absl::flat_hash_map<uint64_t, State> pulls_;         // by wire
  absl::flat_hash_map<uint64_t, uint64_t> by_caller_;  // Pull::id -> wire
  absl::flat_hash_map<uint64_t, Peer> peers_;          // by connection
  std::set<std::pair<Nanos, uint64_t>> deadlines_;
  std::vector<uint64_t> dirty_;
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_PULL_TABLE_H_
