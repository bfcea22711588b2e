// The router's part in tickets: what is missing, who makes it, and the answers to those who wait.
#include <algorithm>
#include <utility>

#include "node/core/limits.h"
#include "node/core/router.h"
#include "radix/base/check.h"

namespace pando {
namespace {

// Twice the time that computing should take, so that a slow replica still counts as computing.
Nanos ComputeLife(uint64_t tokens, uint64_t tokens_per_s) {
  if (tokens_per_s == 0) return limits::kPrefillLifeDefault;
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  const uint64_t life = 2 * tokens * kNanosPerSecond / tokens_per_s;
  return std::clamp<Nanos>(static_cast<Nanos>(life), limits::kPrefillLifeMin, limits::kClaimLife);
}
static_assert(2 * limits::kTokensPerPrompt <= UINT64_MAX / 1'000'000'000);

}  // namespace

// Blocks that a prompt of so many tokens may load at most: whole ones, and one token is left to
// compute.
BlockCount Router::LoadLimit(SpaceId space, uint64_t tokens) const {
  const uint32_t block_tokens = context_.cache.shape(space).block_tokens;
  const uint64_t blocks = tokens == 0 ? 0 : (tokens - 1) / block_tokens;
  return BlockCount(std::min(static_cast<uint32_t>(blocks), limits::kPagesPerBegin));
}

std::vector<uint64_t> Router::MissingKeys(const OpenRequest& request, const Match& match,
                                          BlockCount blocks) const {
  std::vector<uint64_t> keys;
  context_.cache.AppendKeys(match, request.prompt.view(), match.blocks + blocks, &keys);
  return keys;
}

// Who brings the block after the match, if another does and it is of use: who writes or computes it
// here, else a fetch, which is begun if it pays, else a peer that computes it.
std::optional<ReplicaNumber> Router::FindMaker(const Replica& replica, const OpenRequest& request,
                                               const Match& match, bool may_fetch) {
  const BlockCount limit = LoadLimit(request.space, request.prompt_tokens);
  if (match.blocks >= limit) return std::nullopt;
  if (match.stop == Stop::kInFlight) {
    const ReplicaNumber writer(match.writer);
    return writer == replica.number ? std::nullopt : std::optional(writer);
  }
  may_fetch = may_fetch && transfer_runs_ && peers_.AnyHolds();
  // Keys cost the hashes of what they name.
  if (tickets_.computations() == 0 && !may_fetch && !peers_.AnyMakes()) return std::nullopt;
  const BlockCount wanted = may_fetch ? limit - match.blocks : BlockCount(1);
  const std::vector<uint64_t> keys = MissingKeys(request, match, wanted);
  if (keys.empty()) return std::nullopt;
  if (const auto maker = tickets_.MakerOf(keys.front(), replica.number)) return maker;
  if (may_fetch) {
    const auto fetch = fetches_.Start({.prompt = request.prompt.view(),
                                       .match = match,
                                       .keys = keys,
                                       .prefill_tokens_per_s = replica.prefill_tokens_per_s});
    if (fetch) return fetch;
  }
  const auto peer = peers_.MakerOf(keys.front());
  return peer ? std::optional(NumberOf(*peer)) : std::nullopt;
}

// What an acquire did not find: somebody else makes it, or this replica is going to.
void Router::WatchMissing(const Session& session, const AcquireRequest& acquire,
                          const OpenRequest& opened, AcquireAnswer* answer) {
  // Looked up anew: the lease may have split the run that the acquire's match ends in.
  const Match match = context_.cache.Find(opened.space, opened.prompt.view(),
                                          LoadLimit(opened.space, opened.prompt_tokens));
  const ReplicaNumber replica = session.replica->number;
  const RequestRef ref{replica, acquire.request, opened.serial};
  const auto maker = FindMaker(*session.replica, opened, match, /*may_fetch=*/true);
  if (!maker) {
    if (acquire.compute) Compute(session, ref, opened, match);
    return;
  }
  answer->in_flight = true;
  answer->ticket = tickets_.Issue({.request = ref,
                                   .space = opened.space,
                                   .lease = answer->claim,
                                   .blocks = answer->blocks,
                                   .compute = acquire.compute,
                                   .deadline = ClaimDeadline(acquire.claim_deadline),
                                   .maker = *maker,
                                   .maker_from = match.blocks.value(),
                                   .maker_to = fetches_.EndOf(*maker).value_or(0),
                                   .fetches = Fetches::IsFetch(*maker) ? 1u : 0u,
                                   .wait = std::nullopt});
  ++context_.counters.tickets;
  context_.Reached(CoreStep::kTicketIssued);
}

void Router::Compute(const Session& session, const RequestRef& ref, const OpenRequest& request,
                     const Match& match) {
  std::vector<uint64_t> keys = MissingKeys(request, match, BlockCount(limits::kPagesPerBegin));
  if (keys.empty()) return;
  const auto to = match.blocks.value() + static_cast<uint32_t>(keys.size());
  const uint64_t tokens = uint64_t{keys.size()} * context_.cache.shape(request.space).block_tokens;
  const Nanos life = ComputeLife(tokens, session.replica->prefill_tokens_per_s);
  tickets_.Compute(ref, to, std::move(keys), context_.now + life);
}

std::optional<Answer> Router::Serve(const Session& session, uint64_t serial, AwaitRequest& await) {
  ++context_.counters.awaits;
  if (auto problem = CheckMayClaim(session)) return Refusal(*std::move(problem));
  const Tickets::Ticket* ticket = tickets_.Find(session.replica->number, await.ticket);
  if (ticket == nullptr) {
    return Refusal(Unknown(
        Text("ticket ", await.ticket, " is over or never was this replica's: nothing is awaited")));
  }
  if (ticket->wait) {
    return Refusal(Invalid(Text("a second await of ticket ", await.ticket,
                                " found, one at a time is allowed: wait for its answer")));
  }
  tickets_.SetWait(await.ticket, {session.id, serial, std::max(await.until, context_.now)});
  return std::nullopt;
}

void Router::AnswerDueTickets() {
  while (const std::optional<uint64_t> due = tickets_.NextDue(context_.now)) LookAgain(*due);
}

void Router::LookAgain(uint64_t id) {
  const Tickets::Ticket ticket = tickets_.ticket(id);
  const bool over = ticket.deadline <= context_.now || draining_;
  if (!ticket.wait) {
    if (over) tickets_.Close(id);
    return;
  }
  const ReplicaNumber replica = ticket.request.replica;
  Session* session = replicas_.Find(ticket.wait->session);
  OpenRequest* request = ledger_.Find(replica, ticket.request.request);
  PANDO_CHECK(session != nullptr && session->replica != nullptr && request != nullptr)
      << "ticket " << id << " outlived its request";
  // 1. Is it still being made?
  const BlockCount limit = LoadLimit(ticket.space, request->prompt_tokens);
  const Match match = context_.cache.Find(ticket.space, request->prompt.view(), limit);
  const uint64_t block_tokens = context_.cache.shape(ticket.space).block_tokens;
  if (Fetches::IsFetch(ticket.maker)) {
    const uint64_t end = std::min(match.blocks.value(), ticket.maker_to);
    Ledger::Fetched(request, ticket.maker_from * block_tokens, end * block_tokens);
  }
  const bool late = over || ticket.wait->until <= context_.now;
  const bool may_fetch = !late && ticket.fetches < limits::kFetchesPerTicket;
  const auto maker = FindMaker(*session->replica, *request, match, may_fetch);
  if (maker && *maker != ticket.maker) {
    tickets_.SetMaker(id, *maker, match.blocks.value(), fetches_.EndOf(*maker));
  }
  if (maker && !late) return;
  // 2. What has come.
  AwaitAnswer answer;
  answer.blocks = ticket.blocks;
  answer.in_flight = maker && !over;
  answer.peer_from = static_cast<uint32_t>(request->fetched_begin / block_tokens);
  answer.peer_to = static_cast<uint32_t>(request->fetched_end / block_tokens);
  const bool more = match.blocks.value() > ticket.blocks &&
                    match.blocks.value() * block_tokens > request->engine_told;
  if (more && !over && !OverCap(replica) && !holds_.CheckRoom(replica)) {
    if (const auto claim = holds_.Lease({ticket.request, ticket.space, ticket.deadline}, match)) {
      holds_.GiveUpIdle(replica, ticket.lease);
      answer.claim = *claim;
      answer.blocks = match.blocks.value();
      tickets_.SetLease(id, *claim, answer.blocks);
    }
  }
  // 3. The answer, and who goes on.
  AnswerAwait(*ticket.wait, {Code::kOk, "", answer});
  tickets_.EndWait(id);
  if (answer.in_flight) return;
  tickets_.Close(id);
  if (ticket.compute && !over && match.blocks < limit) {
    // Looked up anew, as the lease may have split the run.
    Compute(*session, ticket.request, *request,
            context_.cache.Find(ticket.space, request->prompt.view(), limit));
  }
}

void Router::AnswerAwait(const Tickets::Wait& wait, Answer answer) {
  context_.outputs->emplace_back(SendAnswer{wait.session, wait.serial, std::move(answer)});
  context_.Reached(CoreStep::kTicketAnswered);
}

void Router::RefuseAwaits(const std::vector<Tickets::Wait>& waits, const char* why) {
  for (const Tickets::Wait& wait : waits) {
    const Session* session = replicas_.Find(wait.session);
    if (session == nullptr || !session->open) continue;
    AnswerAwait(wait, Refusal(Unknown(Text("the ticket is over: ", why))));
  }
}

}  // namespace pando
