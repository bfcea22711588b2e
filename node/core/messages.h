// The local protocol as plain values: what node/local translates from and to
// proto/pando/v1/client.proto, what tests and the simulator use directly. Field by field the
// meaning is client.proto's. Plain data; no thread.
#ifndef PANDO_NODE_CORE_MESSAGES_H_
#define PANDO_NODE_CORE_MESSAGES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "radix/base/ids.h"

namespace pando {

enum class Role : uint8_t { kScheduler, kWorker, kBoth };

// What a request came to. Only kInvalid and kLimit say that the caller did something wrong.
enum class Code : uint8_t {
  kOk,
  kInvalid,  // malformed, or not allowed for this session; `message` says found, allowed, what to
             // do
  kLimit,    // one of limits.h
  kUnknown,  // no such claim or request (it ended, or never was this replica's)
  kExpired,  // its deadline had passed before it was looked at; it was not executed
  kUnavailable,  // not now: replica incomplete, node draining, space refused
};

struct PromptData {
  struct SegmentData {
    std::string scope;
    uint64_t end = 0;
  };
  struct ExtraData {
    uint32_t block = 0;
    std::string bytes;
  };
  std::vector<uint32_t> tokens;
  std::vector<SegmentData> segments;
  std::vector<ExtraData> extras;
};

struct AttachRequest {
  uint32_t protocol_min = 0, protocol_max = 0;
  uint32_t checksum_formula = 0;
  std::string replica_key;
  Role role = Role::kBoth;
  ShardId shard;
  uint32_t world_size = 1;
  uint32_t block_tokens = 0;                                // 0: this side does not know
  Bytes page_bytes;                                         // 0: this side does not know
  std::vector<std::pair<std::string, std::string>> fields;  // of the space, in any order
  uint64_t prefill_tokens_per_s = 0;                        // estimate; 0: unknown
  std::string credential;                                   // no tenants yet: must be empty
  SessionId replaces;                                       // 0: none
  // Set by node/local, not by the caller:
  bool has_pidfd = false;
  uint64_t process = 0;  // which one the pidfd names: equal numbers are the same; 0: not known
};
struct AcquireRequest {
  RequestId request;
  PromptData prompt;
  uint64_t engine_hit_tokens = 0;  // leading tokens that the engine's own cache has
  Nanos claim_deadline = 0;        // absolute; 0: limits::kClaimLifeDefault from now
  bool compute = false;            // the replica means to compute what is missing, and to store it
  bool again = false;              // a counted request goes on: it is not counted again
};
struct AwaitRequest {
  uint64_t ticket = 0;
  Nanos until = 0;  // absolute: answered then at the latest, with what has come; 0: at once
};
struct ProbeRequest {
  PromptData prompt;
};
struct ReserveRequest {
  RequestId request;  // an open request; or, with 0, `prompt` says all
  PromptData prompt;  // only when request is 0
  std::vector<uint32_t>
      append_tokens;          // decoded since: added to the open request's prompt, last scope
  uint32_t from = 0, to = 0;  // blocks
  Nanos claim_deadline = 0;
};
struct BeginRequest {
  std::vector<ClaimId> claims;
};
struct EndItem {
  ClaimId claim;
  bool failed = false;              // a store that did not happen: drops all of it
  std::vector<uint64_t> checksums;  // a store: one a page of this shard, in block order
  std::vector<uint32_t>
      bad_pages;  // a load: index from the claim's first block of pages found bad;
};                // a store: of pages that were not written
struct EndRequest {
  std::vector<EndItem> items;
};
struct AbortRequest {
  std::vector<ClaimId> claims;
};
struct SettleRequest {
  RequestId request;
  uint64_t engine = 0, device = 0, host = 0, disk = 0, peer = 0;  // tokens really used, by source
  uint64_t failed = 0;                                            // tokens of loads that failed
  uint64_t prefill_micros = 0;  // spent computing the rest; 0: not measured
};

using RequestBody =
    std::variant<AttachRequest, AcquireRequest, AwaitRequest, ProbeRequest, ReserveRequest,
                 BeginRequest, EndRequest, AbortRequest, SettleRequest>;

struct AttachAnswer {
  SessionId session;
  uint32_t protocol = 0;
};
struct AcquireAnswer {
  ClaimId claim;           // 0: there is nothing to load
  uint32_t blocks = 0;     // leading blocks that this replica may load
  bool in_flight = false;  // the next block is being written by somebody right now
  uint64_t ticket = 0;     // to await more with; 0: nobody else is making more of it
};
struct AwaitAnswer {
  ClaimId claim;        // on all `blocks`, instead of the acquire's; 0: no more than that has come
  uint32_t blocks = 0;  // leading blocks that this replica may load by the claim that stands
  bool in_flight = false;               // more is still being made: the ticket may be awaited again
  uint32_t peer_from = 0, peer_to = 0;  // blocks that came from peers while the request waited
};
struct ProbeAnswer {
  uint32_t blocks = 0;
  bool in_flight = false;
};
struct ReserveAnswer {
  ClaimId claim;              // 0: nothing to store (`from` == `to`)
  uint32_t from = 0, to = 0;  // blocks that got pages
  bool in_flight = false;     // somebody else is writing the first missing block
  bool full = false;
};
struct BeginItem {
  ClaimId claim;
  Code code = Code::kOk;  // not kOk: do not touch anything. kLimit: begin it in another message
  std::string message;
  bool store = false;
  uint32_t first_block = 0;
  Bytes page_bytes;
  std::vector<PageId> pages;  // of this session's shard, in block order, parallel with:
  std::vector<Generation> generations;
  std::vector<uint64_t> checksums;  // empty for a store
};
struct BeginAnswer {
  std::vector<BeginItem> items;
};
struct EndAnswer {
  std::vector<Code> codes;  // parallel with the items: kUnknown: too late, nothing was committed
};
struct AbortAnswer {};
struct SettleAnswer {};

using AnswerBody =
    std::variant<std::monostate, AttachAnswer, AcquireAnswer, AwaitAnswer, ProbeAnswer,
                 ReserveAnswer, BeginAnswer, EndAnswer, AbortAnswer, SettleAnswer>;

struct Answer {
  Code code = Code::kOk;
  std::string message;  // empty when kOk, but of a settle whose numbers could not all be true
  AnswerBody body;      // monostate when code is not kOk
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_MESSAGES_H_
