// The router's answers to the messages of attached sessions.
#include <algorithm>
#include <utility>

#include "node/core/limits.h"
#include "node/core/owned_prompt.h"
#include "node/core/router.h"

namespace pando {
namespace {

template <class Body>
Answer Ok(Body body) {
  return {Code::kOk, "", std::move(body)};
}

std::optional<Problem> CheckSchedules(const Session& session) {
  if (session.schedules()) return std::nullopt;
  return Invalid("a scheduler's message from a worker found: send it on the scheduler's session");
}

std::optional<Problem> CheckWorks(const Session& session, size_t claims) {
  if (!session.works()) {
    return Invalid("a worker's message from a scheduler found: send it on a worker's session");
  }
  if (claims <= limits::kClaimsPerMessage) return std::nullopt;
  return OverLimit("claims", claims, limits::kClaimsPerMessage, "in one message", "split it");
}

constexpr Nanos kFullSaidEvery = 60'000'000'000;

}  // namespace

Answer Router::Serve(const Session& session, AttachRequest&) {
  return Refusal(Invalid(Text("a second attach of session ", session.id,
                              " found: attach once, on a new connection if anew")));
}

std::optional<Problem> Router::CheckMayClaim(const Session& session) const {
  if (auto problem = CheckSchedules(session)) return problem;
  if (draining_) return Unavailable("the node is draining: go on without the cache");
  if (auto problem = Replicas::CheckReady(*session.replica)) return problem;
  return holds_.CheckRoom(session.replica->number);
}

bool Router::OverCap(ReplicaNumber replica) {
  if (!holds_.OverQuarantineCap(replica)) return false;
  ++context_.counters.quarantine_refused;
  return true;
}

Nanos Router::ClaimDeadline(Nanos asked) const {
  if (asked == 0) return context_.now + limits::kClaimLifeDefault;
  return std::min(asked, context_.now + limits::kClaimLife);
}

Answer Router::Serve(const Session& session, AcquireRequest& acquire) {
  ++context_.counters.acquires;
  if (auto problem = CheckMayClaim(session)) return Refusal(*std::move(problem));
  const SpaceId space = *session.replica->space;
  auto opened = ledger_.Make(space, std::move(acquire.prompt));
  if (auto problem = opened->prompt.Check(context_.cache.shape(space).block_tokens)) {
    return Refusal(*std::move(problem));
  }
  if (acquire.engine_hit_tokens > opened->prompt_tokens) {
    return Refusal(Invalid(Text("engine_hit_tokens ", acquire.engine_hit_tokens, " found, at most ",
                                opened->prompt_tokens, " allowed: the prompt has no more")));
  }
  opened->engine_told = acquire.engine_hit_tokens;
  opened->again = acquire.again;
  const OpenRequest& request = *opened;
  if (auto problem = ledger_.Open(session.replica->number, acquire.request, std::move(opened))) {
    return Refusal(*std::move(problem));
  }
  return Ok(MatchAndLease(session, acquire, request));
}

AcquireAnswer Router::MatchAndLease(const Session& session, const AcquireRequest& acquire,
                                    const OpenRequest& opened) {
  AcquireAnswer answer;
  const ReplicaNumber replica = session.replica->number;
  const Nanos deadline = ClaimDeadline(acquire.claim_deadline);
  if (OverCap(replica) || deadline <= context_.now) return answer;
  const Match match = context_.cache.Find(opened.space, opened.prompt.view(),
                                          LoadLimit(opened.space, opened.prompt_tokens));
  answer.in_flight = match.stop == Stop::kInFlight;
  if (const auto key = context_.cache.ToldKey(match)) feeds_.Used(*key);
  LeaseMatched(acquire, opened, replica, deadline, match, &answer);
  if (match.stop != Stop::kEnd || acquire.compute) {
    WatchMissing(session, acquire, opened, &answer);
  }
  return answer;
}

void Router::LeaseMatched(const AcquireRequest& acquire, const OpenRequest& opened,
                          ReplicaNumber replica, Nanos deadline, const Match& match,
                          AcquireAnswer* answer) {
  if (match.blocks == BlockCount(0)) return;
  context_.Reached(CoreStep::kAcquireMatched);
  const uint64_t block_tokens = context_.cache.shape(opened.space).block_tokens;
  if (match.blocks.value() * block_tokens <= opened.engine_told) {
    holds_.Touch(match);  // the engine has all of it: used, but nothing to load
    return;
  }
  const ClaimTerms terms{{replica, acquire.request, opened.serial}, opened.space, deadline};
  const std::optional<ClaimId> claim = holds_.Lease(terms, match);
  if (!claim) return;
  answer->claim = *claim;
  answer->blocks = match.blocks.value();
}

Answer Router::Serve(const Session& session, ProbeRequest& probe) {
  ++context_.counters.probes;
  if (auto problem = CheckSchedules(session)) return Refusal(*std::move(problem));
  if (auto problem = Replicas::CheckReady(*session.replica)) return Refusal(*std::move(problem));
  const SpaceId space = *session.replica->space;
  const uint32_t block_tokens = context_.cache.shape(space).block_tokens;
  const OwnedPrompt prompt(std::move(probe.prompt));
  if (auto problem = prompt.Check(block_tokens)) return Refusal(*std::move(problem));
  const Match match = context_.cache.Find(space, prompt.view(), LoadLimit(space, prompt.tokens()));
  return Ok(ProbeAnswer{match.blocks.value(), match.stop == Stop::kInFlight});
}

std::optional<Problem> Router::CheckReserve(const Session& session,
                                            const ReserveRequest& reserve) const {
  if (auto problem = CheckMayClaim(session)) return problem;
  if (reserve.from > reserve.to) {
    return Invalid(Text("blocks ", reserve.from, " to ", reserve.to,
                        " found: `from` must not lie behind `to`"));
  }
  const bool by_request = reserve.request != RequestId();
  if (by_request && !reserve.prompt.tokens.empty()) {
    return Invalid("a request and a prompt found: name the open request, or send a prompt with 0");
  }
  if (!by_request && !reserve.append_tokens.empty()) {
    return Invalid("append_tokens without a request found: name the open request to append to");
  }
  return std::nullopt;
}

Answer Router::Serve(const Session& session, ReserveRequest& reserve) {
  ++context_.counters.reserves;
  if (auto problem = CheckReserve(session, reserve)) {
    StopGrowth(session, reserve);
    return Refusal(*std::move(problem));
  }
  if (reserve.request != RequestId()) return ReserveForRequest(session, reserve);
  const OwnedPrompt prompt(std::move(reserve.prompt));
  const SpaceId space = *session.replica->space;
  if (auto problem = prompt.Check(context_.cache.shape(space).block_tokens)) {
    return Refusal(*std::move(problem));
  }
  return ReservePages(session, reserve, prompt.view(), 0);
}

Answer Router::ReserveForRequest(const Session& session, const ReserveRequest& reserve) {
  const ReplicaNumber replica = session.replica->number;
  OpenRequest* request = ledger_.Find(replica, reserve.request);
  if (request == nullptr) {
    return Refusal(Unknown(
        Text("request ", reserve.request, " is not open: acquire it first, or send the prompt")));
  }
  if (auto problem = ledger_.Append(replica, request, reserve.append_tokens)) {
    StopGrowth(session, reserve);
    return Refusal(*std::move(problem));
  }
  return ReservePages(session, reserve, request->prompt.view(), request->serial);
}

// Its tokens were not taken: tokens told later would follow a hole, so none are taken any more.
void Router::StopGrowth(const Session& session, const ReserveRequest& reserve) {
  if (reserve.append_tokens.empty()) return;
  OpenRequest* request = ledger_.Find(session.replica->number, reserve.request);
  if (request != nullptr) request->growth_stopped = true;
}

Answer Router::ReservePages(const Session& session, const ReserveRequest& reserve,
                            const Prompt& prompt, uint64_t request_serial) {
  const ReplicaNumber replica = session.replica->number;
  const SpaceId space = *session.replica->space;
  ReserveAnswer answer;
  answer.from = answer.to = reserve.from;
  const Nanos deadline = ClaimDeadline(reserve.claim_deadline);
  answer.full = OverCap(replica);
  if (answer.full || deadline <= context_.now) return Ok(answer);
  const Reservation reserved = context_.cache.Reserve(
      space, prompt, BlockCount(reserve.to), replica.value(), BlockCount(limits::kPagesPerBegin));
  switch (reserved.status) {
    case ReserveStatus::kNothing:
      break;
    case ReserveStatus::kInFlight:
      ++context_.counters.reserve_in_flight;
      answer.in_flight = true;
      break;
    case ReserveStatus::kFull:
    case ReserveStatus::kNoMemory:
      ++context_.counters.reserve_full;
      answer.full = true;
      tickets_.StopComputing({replica, reserve.request, request_serial});
      SayFull(space, std::min<uint64_t>(reserve.to, prompt.tokens.size() /
                                                        context_.cache.shape(space).block_tokens));
      break;
    case ReserveStatus::kOk:
      answer.claim =
          holds_.Reserve({{replica, reserve.request, request_serial}, space, deadline}, reserved);
      answer.from = reserved.from.value();
      answer.to = reserved.to.value();
  }
  return Ok(answer);
}

// What fits and what does not may come in turn, so it is said by the minute; the counter counts.
void Router::SayFull(SpaceId space, uint64_t blocks_wanted) {
  context_.Reached(CoreStep::kReserveFull);
  if (full_said_.size() <= space.value()) full_said_.resize(space.value() + 1);
  Nanos& said = full_said_[space.value()];
  if (said != 0 && context_.now - said < kFullSaidEvery) return;
  said = context_.now;
  const SpaceShape& shape = context_.cache.shape(space);
  const uint64_t wanted = blocks_wanted * shape.shards;
  const uint64_t slab = extents_ * (kExtentBytes.value() / PageStride(shape.page_bytes).value());
  context_.Log(LogLine::Level::kWarning, "space.full",
               {{"space", Text(space)},
                {"extents_unowned", Text(context_.cache.extents_unowned())},
                {"pages_wanted", Text(wanted)},
                {"pages_of_slab", Text(slab)},
                {"hint", extents_ == 0 ? "the slab is not there yet: its node is starting"
                         : wanted > slab
                             ? "the prompt is larger than the slab: make --host-slab larger"
                             : "its pages are claimed, its share is used up, or other spaces have "
                               "all extents until a restart"}});
}

Answer Router::Serve(const Session& session, BeginRequest& begin) {
  ++context_.counters.begins;
  if (auto problem = CheckWorks(session, begin.claims.size())) return Refusal(*std::move(problem));
  BeginAnswer answer;
  answer.items.resize(begin.claims.size());
  const Worker worker{session.replica->number, session.id, session.shard};
  uint64_t room = limits::kPagesPerBegin;
  for (size_t i = 0; i < begin.claims.size(); ++i) {
    holds_.Begin(worker, begin.claims[i], room, &answer.items[i]);
    room -= answer.items[i].pages.size();
    context_.counters.requests_refused.Add(answer.items[i].code);
  }
  return Ok(std::move(answer));
}

Answer Router::Serve(const Session& session, EndRequest& end) {
  ++context_.counters.ends;
  if (auto problem = CheckWorks(session, end.items.size())) return Refusal(*std::move(problem));
  const Worker worker{session.replica->number, session.id, session.shard};
  // All or nothing: a message that is malformed anywhere changes nothing.
  for (const EndItem& item : end.items) {
    if (auto problem = holds_.CheckEnd(worker, item)) return Refusal(*std::move(problem));
  }
  EndAnswer answer;
  answer.codes.reserve(end.items.size());
  for (const EndItem& item : end.items) {
    answer.codes.push_back(holds_.End(worker, item, /*too_late=*/false));
    context_.counters.requests_refused.Add(answer.codes.back());
  }
  return Ok(std::move(answer));
}

Answer Router::Serve(const Session& session, AbortRequest& abort) {
  ++context_.counters.aborts;
  if (auto problem = CheckSchedules(session)) return Refusal(*std::move(problem));
  if (abort.claims.size() > limits::kClaimsPerMessage) {
    return Refusal(OverLimit("claims", abort.claims.size(), limits::kClaimsPerMessage,
                             "in one message", "split it"));
  }
  size_t unknown = 0;
  for (ClaimId claim : abort.claims) {
    if (!holds_.Abort(session.replica->number, claim)) ++unknown;
  }
  if (unknown == 0) return Ok(AbortAnswer{});
  if (unknown == abort.claims.size()) {
    return Refusal(Unknown(Text("none of ", unknown,
                                " claims stands: they had ended or never were "
                                "this replica's, nothing is left to abort")));
  }
  return Refusal(Unknown(Text(unknown, " of ", abort.claims.size(),
                              " claims had ended or never were this replica's: the others are "
                              "aborted")));
}

// What the replica really needed, over what it said at attach.
void Router::LearnPrefillRate(Replica* replica, uint64_t prompt, const SettleRequest& settle) {
  const uint64_t computed = prompt - settle.engine - settle.host - settle.peer;
  if (settle.prefill_micros == 0 || computed < limits::kTokensToMeasure) return;
  const uint64_t rate = computed * 1'000'000 / settle.prefill_micros;
  const uint64_t before = replica->prefill_tokens_per_s;
  replica->prefill_tokens_per_s =
      std::max<uint64_t>(1, before == 0 ? rate : (7 * before + rate) / 8);
}

Answer Router::Serve(const Session& session, SettleRequest& settle) {
  ++context_.counters.settles;
  if (auto problem = CheckSchedules(session)) return Refusal(*std::move(problem));
  const ReplicaNumber replica = session.replica->number;
  const OpenRequest* request = ledger_.Find(replica, settle.request);
  const RequestRef ref{replica, settle.request, request == nullptr ? 0 : request->serial};
  const uint64_t prompt = request == nullptr ? 0 : request->prompt_tokens;
  Answer answer = Ok(SettleAnswer{});
  if (auto problem = ledger_.Settle(replica, settle, &answer.message)) {
    return Refusal(*std::move(problem));
  }
  feeds_.AccountChanged();
  if (answer.message.empty()) LearnPrefillRate(session.replica, prompt, settle);
  RefuseAwaits(tickets_.RequestOver(ref), "its request is settled");
  return answer;
}

}  // namespace pando
