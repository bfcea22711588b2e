// Grants: the owner's side of a fetch. A guest may pull the pages of a grant, and nothing else.
//
//   GrantRequest ─► tokens compared ─► path pinned, pages held ─► OfferPages ─► GrantAnswer
//   Done, its life, the guest's end, drain ─► RevokeOffer ─ ─ ─► GrantEnded ─► pages released
//
//  1. Content decides: a grant is given only for blocks whose whole chain of tokens, extra bytes
//     and scopes the guest has sent, or had sent for a live grant of its own (FAULTS A8, G4).
//  2. Owner's rule: pages are held, and so neither evicted nor reused, until the transfer engine
//     says that nothing of the grant is under way any more, whatever the guest does (FAULTS B2,
//     D6).
//  3. What is granted at once is bounded, in number and in bytes; beyond that a guest hears BUSY.
//  4. What was advertised and is gone is an ordinary miss, counted (FAULTS E6).
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_GRANTS_H_
#define PANDO_NODE_CORE_GRANTS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "node/core/context.h"
#include "node/core/owned_prompt.h"
#include "node/core/peer_messages.h"
#include "node/core/spaces.h"

namespace pando {

class Grants {
 public:
  Grants(CoreContext* context, const Spaces* spaces, Bytes slab)
      : context_(context), spaces_(spaces), slab_(slab) {}

  // `fresh`: the id, if one is given. The requester is a guest.
  GrantAnswer Ask(GrantId fresh, GrantRequest request);
  DoneAnswer Done(const DoneRequest& done);
  // The guest is over: all that it was given is revoked.
  void RevokeAllOf(BootId guest);
  void RevokeAll();
  // Revokes what has outlived its life.
  void Expire();
  void Ended(const GrantEnded& ended);

  Nanos next_deadline() const;
  uint64_t count() const { return grants_.size(); }
  uint64_t bytes() const { return bytes_; }
  // Adds the pages that are held here.
  void AddHeld(absl::flat_hash_set<PageId>* pages) const;
  std::string SelfCheck() const;

 private:
  struct Grant {
    BootId guest;
    SpaceId space;
    std::shared_ptr<const OwnedPrompt> prompt;
    PathRef path;
    uint32_t from = 0, to = 0;
    std::vector<PageView> pages;  // shard-major
    uint64_t bytes = 0;
    Nanos deadline = 0;
    bool revoked = false;
  };

  std::shared_ptr<const OwnedPrompt> PromptOf(GrantRequest* request, SpaceId space,
                                              GrantAnswer* refusal) const;
  bool Give(Grant* grant, const Match& match, GrantAnswer* answer);
  void Answer(const Grant& grant, GrantAnswer* answer) const;
  void Revoke(GrantId id, Grant* grant);

  CoreContext* context_;
  const Spaces* spaces_;
  const Bytes slab_;
  absl::flat_hash_map<GrantId, std::unique_ptr<Grant>> grants_;
  std::set<std::pair<Nanos, std::pair<uint64_t, uint64_t>>> deadlines_;  // of those not revoked
  uint64_t bytes_ = 0;
  uint64_t prompt_bytes_ = 0;  // one that several grants share counts in each
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_GRANTS_H_
