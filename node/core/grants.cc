#include "node/core/grants.h"

#include <algorithm>
#include <limits>

#include "node/core/limits.h"
#include "node/core/problem.h"
#include "radix/base/check.h"

namespace pando {
namespace {

GrantAnswer Refused(PeerCode code, std::string message) {
  GrantAnswer answer;
  answer.code = code;
  answer.message = std::move(message);
  return answer;
}

std::pair<uint64_t, uint64_t> Order(GrantId id) {
  return {id.high, id.low};
}

}  // namespace

// The prompt that the request names: its own, or that of a live grant of the same guest.
std::shared_ptr<const OwnedPrompt> Grants::PromptOf(GrantRequest* request, SpaceId space,
                                                    GrantAnswer* refusal) const {
  if (request->of_grant) {
    const auto it = grants_.find(*request->of_grant);
    if (it == grants_.end() || it->second->revoked || it->second->guest != request->requester ||
        it->second->space != space) {
      *refusal = Refused(PeerCode::kUnknown,
                         "the grant that had the tokens is over: send the tokens again");
      return nullptr;
    }
    return it->second->prompt;
  }
  auto prompt = std::make_shared<const OwnedPrompt>(std::move(request->prompt));
  if (auto problem = prompt->Check(context_->cache.shape(space).block_tokens)) {
    *refusal = Refused(PeerCode::kInvalid, std::move(problem->message));
    return nullptr;
  }
  return prompt;
}

GrantAnswer Grants::Ask(GrantId fresh, GrantRequest request) {
  if (request.from >= request.to) {
    return Refused(PeerCode::kInvalid, Text("blocks ", request.from, " to ", request.to,
                                            " found: `from` must lie before `to`"));
  }
  const std::optional<SpaceId> space = spaces_->Find(request.space_identity);
  if (!space) return Refused(PeerCode::kMiss, "this node has no such space");
  const SpaceShape& shape = context_->cache.shape(*space);
  if (request.shards != shape.shards) {
    return Refused(PeerCode::kIncompatible,
                   Text(request.shards, " shards found, ", shape.shards, " expected"));
  }
  GrantAnswer answer;
  auto grant = std::make_unique<Grant>();
  grant->guest = request.requester;
  grant->space = *space;
  grant->prompt = PromptOf(&request, *space, &answer);
  if (grant->prompt == nullptr) return answer;
  const uint32_t most = std::max(1u, limits::kPagesPerGrant / shape.shards);
  const uint32_t to = request.from + std::min(request.to - request.from, most);
  const Match match = context_->cache.Find(*space, grant->prompt->view(), BlockCount(to));
  if (match.blocks.value() <= request.from) {
    ++context_->counters.grants_missed;
    return Refused(PeerCode::kMiss, "these blocks are not here, or no longer");
  }
  grant->from = request.from;
  grant->to = match.blocks.value();
  const Nanos asked = request.life == 0 ? limits::kGrantLifeDefault : request.life;
  grant->deadline = context_->now + std::min(asked, limits::kGrantLife);
  if (!Give(grant.get(), match, &answer)) return answer;
  answer.grant = fresh;
  Answer(*grant, &answer);
  OfferPages offer{fresh, shape.page_bytes, {}};
  offer.pages.reserve(grant->pages.size());
  for (const PageView& view : grant->pages) offer.pages.push_back(view.page.page);
  context_->outputs->emplace_back(std::move(offer));
  deadlines_.emplace(grant->deadline, Order(fresh));
  bytes_ += grant->bytes;
  prompt_bytes_ += grant->prompt->bytes();
  ++context_->counters.grants;
  context_->Reached(CoreStep::kGrantGiven);
  const bool first = grants_.emplace(fresh, std::move(grant)).second;
  PANDO_CHECK(first) << "a grant's id was drawn twice";
  return answer;
}

// Pins and holds; false, with the refusal, if there is no room for it.
bool Grants::Give(Grant* grant, const Match& match, GrantAnswer* answer) {
  const SpaceShape& shape = context_->cache.shape(grant->space);
  const uint64_t pages = uint64_t{grant->to - grant->from} * shape.shards;
  grant->bytes = pages * PageStride(shape.page_bytes).value();
  const auto share =
      static_cast<uint64_t>(static_cast<double>(slab_.value()) * limits::kGrantShare);
  // One grant is always possible: else nothing could be fetched from a small slab.
  const uint64_t prompts = prompt_bytes_ + grant->prompt->bytes();
  if (grants_.size() >= limits::kGrants || (bytes_ > 0 && bytes_ + grant->bytes > share) ||
      prompts > limits::kGrantPromptBytes) {
    ++context_->counters.grants_busy;
    *answer = Refused(PeerCode::kBusy, Text(grants_.size(), " grants of ", bytes_,
                                            " bytes are under way: ask again later"));
    return false;
  }
  const std::optional<PathRef> path = context_->cache.Pin(match);
  if (!path) {
    ++context_->counters.grants_busy;
    *answer = Refused(PeerCode::kBusy, "no memory for another grant: ask again later");
    return false;
  }
  grant->path = *path;
  for (uint32_t shard = 0; shard < shape.shards; ++shard) {
    if (context_->cache.Hold(*path, BlockCount(grant->from), BlockCount(grant->to), ShardId(shard),
                             &grant->pages)) {
      continue;
    }
    context_->cache.Release(grant->pages);
    context_->cache.Unpin(*path);
    ++context_->counters.grants_busy;
    *answer = Refused(PeerCode::kBusy, "no memory for another grant: ask again later");
    return false;
  }
  return true;
}

void Grants::Answer(const Grant& grant, GrantAnswer* answer) const {
  answer->from = grant.from;
  answer->to = grant.to;
  answer->page_bytes = context_->cache.shape(grant.space).page_bytes;
  answer->life = grant.deadline - context_->now;
  answer->generations.reserve(grant.pages.size());
  answer->checksums.reserve(grant.pages.size());
  for (const PageView& view : grant.pages) {
    answer->generations.push_back(view.page.generation.value());
    answer->checksums.push_back(view.checksum);
  }
}

DoneAnswer Grants::Done(const DoneRequest& done) {
  DoneAnswer answer;
  for (const BadPages& bad : done.bad) {
    const auto it = grants_.find(bad.grant);
    if (it == grants_.end() || it->second->guest != done.requester) continue;
    // The page stays: its next reader here compares the checksum too, and a guest may lie.
    context_->counters.peer_pages_called_bad += bad.pages.size();
    context_->Log(LogLine::Level::kWarning, "grant.pages_bad",
                  {{"guest", Text(done.requester)}, {"pages", Text(bad.pages.size())}});
  }
  for (const GrantId id : done.grants) {
    const auto it = grants_.find(id);
    if (it == grants_.end() || it->second->guest != done.requester || it->second->revoked) {
      ++answer.unknown;
    } else {
      Revoke(id, it->second.get());
    }
  }
  return answer;
}

void Grants::Revoke(GrantId id, Grant* grant) {
  if (grant->revoked) return;
  grant->revoked = true;
  deadlines_.erase({grant->deadline, Order(id)});
  context_->outputs->emplace_back(RevokeOffer{id});
}

void Grants::RevokeAllOf(BootId guest) {
  // Sorted, so that the order of a hash table does not show.
  for (const auto& [deadline, order] : std::set(deadlines_)) {
    const GrantId id{order.first, order.second};
    Grant* grant = grants_.at(id).get();
    if (grant->guest == guest) Revoke(id, grant);
  }
}

void Grants::RevokeAll() {
  for (const auto& [deadline, order] : std::set(deadlines_)) {
    const GrantId id{order.first, order.second};
    Revoke(id, grants_.at(id).get());
  }
}

void Grants::Expire() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= context_->now) {
    const auto [high, low] = deadlines_.begin()->second;
    ++context_->counters.grants_expired;
    Revoke({high, low}, grants_.at({high, low}).get());
  }
}

void Grants::Ended(const GrantEnded& ended) {
  const auto it = grants_.find(ended.grant);
  PANDO_CHECK(it != grants_.end() && it->second->revoked) << "a grant ended that was not revoked";
  Grant& grant = *it->second;
  context_->counters.peer_pages_sent += ended.pages_sent;
  context_->cache.Release(grant.pages);
  context_->cache.Unpin(grant.path);
  bytes_ -= grant.bytes;
  prompt_bytes_ -= grant.prompt->bytes();
  grants_.erase(it);
  context_->Reached(CoreStep::kGrantEnded);
}

Nanos Grants::next_deadline() const {
  return deadlines_.empty() ? std::numeric_limits<Nanos>::max() : deadlines_.begin()->first;
}

void Grants::AddHeld(absl::flat_hash_set<PageId>* pages) const {
  for (const auto& [id, grant] : grants_) {
    for (const PageView& view : grant->pages) pages->insert(view.page.page);
  }
}

std::string Grants::SelfCheck() const {
  uint64_t bytes = 0, prompt_bytes = 0, standing = 0;
  for (const auto& [id, grant] : grants_) {
    bytes += grant->bytes;
    prompt_bytes += grant->prompt->bytes();
    if (grant->revoked) continue;
    ++standing;
    if (!deadlines_.contains({grant->deadline, Order(id)})) return "a grant without a deadline";
  }
  if (bytes != bytes_ || prompt_bytes != prompt_bytes_ || standing != deadlines_.size())
    return "grants are miscounted";
  return "";
}

}  // namespace pando
