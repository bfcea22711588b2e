// Fetches: the requester's side. Blocks that peers hold are brought here as if somebody stored
// them.
//
//   Start: a plan that pays ─► pages reserved (writer: the fetch) ─► parts, one a peer
//   part   asking ──Grant──► pulling ──each page: commit, release──► ended
//            │ miss, refusal, failure: another holder, once            │
//   fetch  all parts ended, or its deadline ─► reservation finished ─► who waits looks again
//
//  1. Requester's rule: a page that the engine may write stays held until that page's own outcome;
//     a deadline answers who waits and finishes the reservation, and leaves such pages quarantined
//     (FAULTS B2, D6). An unknown peer, a late answer, a second one change nothing.
//  2. A page is committed only when it arrived with the checksum that the owner had promised, which
//     its next readers compare again (FAULTS B6, G4).
//  3. A fetch is begun only if the plan's time is less than computing would take (FAULTS E8).
//  4. What was fetched up to the first gap stays; the rest of the reservation is dropped.
//
// Who waits are tickets, whose maker is the fetch's number. Owner thread only.
#ifndef PANDO_NODE_CORE_FETCHES_H_
#define PANDO_NODE_CORE_FETCHES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "node/core/context.h"
#include "node/core/owned_prompt.h"
#include "node/core/peers.h"
#include "node/core/tickets.h"

namespace pando {

class Fetches {
 public:
  Fetches(CoreContext* context, Peers* peers, Tickets* tickets)
      : context_(context), peers_(peers), tickets_(tickets) {}

  // A request's missing blocks: those of `prompt` behind `match`, whose names are `keys`.
  struct Wanted {
    Prompt prompt;
    Match match;
    std::span<const uint64_t> keys;
    uint64_t prefill_tokens_per_s = 0;  // 0: not known
  };
  // The number of the fetch that brings at least the first of them; nullopt: nobody has it, or it
  // does not pay, or there is no room.
  std::optional<ReplicaNumber> Start(const Wanted& wanted);

  // An answer to a grant; false: that call was none.
  bool Take(PeerAnswered& answered);
  void Take(const PullPages& pages);
  void Take(const PullEnded& ended);
  // This life of the peer is over.
  void PeerOver(PeerId peer);
  // Ends what has outlived its time.
  void Expire();
  // The node ends: all fetches end now.
  void EndAll();

  // Fetch numbers are no replica's.
  static bool IsFetch(ReplicaNumber number) { return number.value() >> 63 != 0; }
  // Where a fetch's blocks end; nullopt: it is none, or no more.
  std::optional<uint32_t> EndOf(ReplicaNumber number) const;

  Nanos next_deadline() const;
  uint64_t count() const { return fetches_.size(); }
  void AddHeld(absl::flat_hash_set<PageId>* pages) const;
  // Reservations that stand, and the pages that are still to be written in them.
  uint64_t standing() const { return deadlines_.size(); }
  uint64_t PagesToWrite() const;
  std::string SelfCheck() const;

 private:
  struct Page {
    PageView view;
    bool open = true;  // its outcome has not come
    bool good = false;
  };
  struct Part {
    uint64_t id = 0;  // its grant's call, then its pull
    PeerId peer;
    BootId boot;
    uint32_t from = 0, to = 0;  // blocks
    bool retried = false;       // it is the second try for them
    std::optional<GrantId> grant;
    std::vector<Page> pages;        // of [from, to), shard-major; none before the grant
    std::vector<uint32_t> pulling;  // which of them the pull names, in its order
    Peers::Pulled pulled;
    std::vector<uint32_t> bad;
  };
  struct Fetch {
    uint64_t number = 0;
    SpaceId space;
    Reservation reservation;
    std::unique_ptr<const OwnedPrompt> prompt;
    std::vector<uint64_t> keys;  // of the blocks from reservation.from on
    Nanos deadline = 0;
    bool over = false;  // finished; parts may still be ending
    std::map<uint64_t, Part> parts;
  };
  using FetchPtr = std::unique_ptr<Fetch>;
  struct Plan {
    std::vector<Peers::Holder> holders;
    uint32_t blocks = 0;
    Nanos takes = 0;  // 0: not known
  };

  std::optional<Plan> MakePlan(const Wanted& wanted) const;
  Nanos PullTime(const Wanted& wanted, const Peers::Holder& holder) const;
  void Split(Fetch* fetch, const Plan& plan);
  void Ask(Fetch* fetch, Part part, std::optional<GrantId> of_grant);
  void Granted(Fetch* fetch, Part part, GrantAnswer answer);
  std::optional<std::string> CheckAnswer(const Fetch& fetch, const Part& part,
                                         const GrantAnswer& answer) const;
  bool HoldPages(Fetch* fetch, Part* part);
  void Pull(Fetch* fetch, Part part, const GrantAnswer& answer);
  void SayDone(const Part& part);
  void AskAnother(Fetch* fetch, const Part& part, uint32_t from);
  void Outcome(Fetch* fetch, Part* part, uint32_t index, PageOutcome outcome);
  Fetch* FindPart(uint64_t id, Part** part);
  Part TakePart(Fetch* fetch, uint64_t id);
  void Finish(Fetch* fetch);
  void EraseIfEnded(Fetch* fetch);

  CoreContext* context_;
  Peers* peers_;
  Tickets* tickets_;
  std::map<uint64_t, FetchPtr> fetches_;              // by number
  absl::flat_hash_map<uint64_t, uint64_t> fetch_of_;  // by part: call or pull
  std::set<std::pair<Nanos, uint64_t>> deadlines_;    // of those not over
  uint64_t last_ = 0;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_FETCHES_H_
