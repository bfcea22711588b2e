// Ledger: every open request, and the account of all settled ones, in tokens.
//
//   Open ──► Append* ──► LoadEnded? ──► Settle (by the engine) or SettleAll (by the node)
//
// Invariants:
//  1. A request is counted once, when it is settled (FAULTS F1). One that goes on after a
//  preemption
//     is opened again, and not counted.
//  2. prompt == hit_engine + hit_device + hit_host + hit_disk + hit_peer + computed, in total and
//     in each space; the spaces sum to the total (FAULTS F3).
//  3. hit_host + hit_peer never exceed what a load of that request delivered to all shards, without
//     a gap from its first block on (FAULTS F5, F6). Of the tokens that were used those are
//     hit_peer's that were fetched while the request waited; an engine need not know.
//  4. A prompt only grows by tokens that were told in order and without a loss: a Reserve that was
//     not executed stops the growth, since what follows could be keyed by the wrong tokens.
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_LEDGER_H_
#define PANDO_NODE_CORE_LEDGER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "node/core/context.h"
#include "node/core/owned_prompt.h"
#include "node/core/problem.h"

namespace pando {

// Names one opening of a request: an engine may use its id again after it was settled.
struct RequestRef {
  ReplicaNumber replica;
  RequestId request;    // 0: none
  uint64_t serial = 0;  // of the opening
};

struct OpenRequest {
  OpenRequest(uint64_t request_serial, SpaceId request_space, PromptData data)
      : serial(request_serial),
        space(request_space),
        prompt(std::move(data)),
        prompt_tokens(prompt.tokens()) {}

  uint64_t serial;
  SpaceId space;
  OwnedPrompt prompt;        // as it is now
  uint64_t prompt_tokens;    // as it was opened: what the account counts
  uint64_t engine_told = 0;  // leading tokens that the engine says it has itself, at its acquire
  uint64_t loaded = 0;       // leading tokens that its lease brought to all shards
  uint64_t failed = 0;       // tokens that a begun load did not bring
  // Tokens that were fetched from peers while it waited: [begin, end) of the prompt.
  uint64_t fetched_begin = 0, fetched_end = 0;
  bool growth_stopped = false;
  bool again = false;  // was counted before
};

class Ledger {
 public:
  explicit Ledger(CoreContext* context) : context_(context) {}

  // Opens a request, or says why it cannot be.
  std::optional<Problem> Open(ReplicaNumber replica, RequestId request,
                              std::unique_ptr<OpenRequest> opened);
  // A request that Open can take.
  std::unique_ptr<OpenRequest> Make(SpaceId space, PromptData data) {
    return std::make_unique<OpenRequest>(++last_serial_, space, std::move(data));
  }
  OpenRequest* Find(ReplicaNumber replica, RequestId request);
  std::optional<Problem> Append(ReplicaNumber replica, OpenRequest* request,
                                std::span<const uint32_t> tokens);

  // These blocks came from peers while the request waited for them.
  static void Fetched(OpenRequest* request, uint64_t begin_token, uint64_t end_token);
  // The one lease of a request is over: what it brought, what it failed to bring, in tokens. What
  // is said later counts.
  void LoadEnded(const RequestRef& ref, uint64_t loaded, uint64_t failed);

  // Counts a request and closes it, whatever is said of it: what cannot be counts as computed, and
  // `*corrected` says so. A problem: it is not open.
  std::optional<Problem> Settle(ReplicaNumber replica, const SettleRequest& settle,
                                std::string* corrected);
  // The replica cannot settle any more: counts its requests with what was loaded.
  void SettleAll(ReplicaNumber replica);

  uint64_t open() const { return open_; }
  const Account& account() const { return total_; }
  Account account(SpaceId space) const;
  std::string SelfCheck() const;

 private:
  struct Book {  // of one replica
    absl::flat_hash_map<RequestId, std::unique_ptr<OpenRequest>> requests;
    uint64_t bytes = 0;  // of the prompts of all its open requests
  };

  // Takes in so many more bytes of prompts, or says why not.
  std::optional<Problem> TakeBytes(Book* book, uint64_t more);
  void Count(const OpenRequest& request, const SettleRequest& settle);

  CoreContext* context_;
  absl::flat_hash_map<ReplicaNumber, Book> books_;
  uint64_t last_serial_ = 0;
  uint64_t open_ = 0, open_bytes_ = 0;
  Account total_;
  std::vector<Account> by_space_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_LEDGER_H_
