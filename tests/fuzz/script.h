// A fuzzed conversation with one NodeCore, as values: what engines, peers and time do, one after
// another.
//
//   bytes ──DecodeScript──► Script ──RunScript──► "", or the first thing that is broken
//     ▲                      │  └─────PrintCase──► a GoogleTest case that does the same
//     └─────EncodeScript─────┘
//
// Any bytes are a script: a Start, then Operations of kOperationBytes each, what is left over is
// ignored. Immutable values; no thread.
#ifndef PANDO_TESTS_FUZZ_SCRIPT_H_
#define PANDO_TESTS_FUZZ_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pando::fuzz {

enum class Kind : uint8_t {
  // Engines, and this node
  kTick,
  kExtent,
  kOpen,
  kAttach,
  kAcquire,
  kAwait,
  kProbe,
  kReserve,
  kBegin,
  kEnd,
  kAbort,
  kSettle,
  kClose,
  kExit,
  kRefused,
  kDrain,
  // Other nodes, and transfers
  kPeers,
  kAnswer,
  kFeed,
  kFeedEnds,
  kPulled,
  kHello,
  kGrant,
  kDone,
  kGoodbye,
  kSubscribe,
  kFeedReady,
  kUnsubscribe,
  kSent,
};
inline constexpr uint8_t kEngineKinds = 16, kKinds = 29;

// What each number means is its kind's (engines.cc, neighbours.cc); all are taken modulo what
// there is.
struct Operation {
  Kind kind = Kind::kTick;
  uint8_t who = 0;      // the slot of a session; a peer
  uint8_t which = 0;    // of what was given (claims, tickets, calls ...): 0 is the newest
  uint8_t request = 0;  // the engine's number of it; of an attach: the replica
  uint8_t prompt = 0;   // whose tokens, and from where on other ones (prompts.h)
  uint8_t tokens = 0;   // how many
  uint8_t form = 0;     // of the prompt: segments and extras (prompts.h)
  uint8_t from = 0, to = 0;
  uint8_t time = 0;  // a deadline, or how long (NanosOf)
  uint8_t odd = 0;   // what is wrong with it; 0: nothing. 1: its deadline has passed
  uint8_t more = 0;
  friend bool operator==(const Operation&, const Operation&) = default;
};
inline constexpr size_t kOperationBytes = sizeof(Operation);
static_assert(kOperationBytes == 12);

// How the node is made.
struct Start {
  uint8_t extents = 1;       // that are there at once
  uint8_t extent_pages = 8;  // at most, in each
  uint8_t share = 0;         // of all extents, that one space may have, in tenths; 0: all
  uint8_t collide = 0;       // 1: all keys are equal
  friend bool operator==(const Start&, const Start&) = default;
};

struct Script {
  bool peers = false;  // the node is in a cluster; else engines are all there is
  Start start;
  std::vector<Operation> operations;
  friend bool operator==(const Script&, const Script&) = default;
};

// At most so many operations are done: what takes long finds little.
inline constexpr size_t kOperationsMax = 256;

Script DecodeScript(std::span<const uint8_t> bytes, bool peers);
std::vector<uint8_t> EncodeScript(const Script& script);

// Plays it on a core; after each step all that must hold is checked, and at the end, when everybody
// has gone, that every count is back at base.
std::string RunScript(const Script& script);

// `TEST(FuzzFound, name) {...}`.
std::string PrintCase(const Script& script, std::string_view name);

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_SCRIPT_H_
