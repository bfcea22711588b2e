#include "node/core/router.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "node/core/limits.h"

namespace pando {

void RefusedByCode::Add(Code code) {
  if (code == Code::kInvalid) ++invalid;
  if (code == Code::kLimit) ++limit;
  if (code == Code::kUnknown) ++unknown;
  if (code == Code::kUnavailable) ++unavailable;
}

Router::Router(const NodeCore::Options& options, StepListener* steps)
    : context_(options.cache, steps),
      ledger_(&context_),
      feeds_(&context_),
      tickets_(&feeds_, options.first_claim.value()),
      holds_(&context_, &ledger_, &tickets_, options),
      spaces_(&context_),
      replicas_(&context_, &spaces_),
      guests_(&context_),
      grants_(&context_, &spaces_, options.slab_bytes),
      peers_(&context_),
      fetches_(&context_, &peers_, &tickets_),
      key_secret_(options.cache.key_secret) {}

void Router::Step(Nanos now, Input input, std::vector<Output>* outputs) {
  context_.outputs = outputs;
  context_.now = std::max(context_.now, now);
  context_.cache.set_now(context_.now);
  ++context_.counters.steps;
  holds_.Expire();
  grants_.Expire();
  fetches_.Expire();
  std::visit([this](auto& body) { Take(body); }, input);
  SpreadPeerNews();
  AnswerDueTickets();
  feeds_.Turn();
  context_.outputs = nullptr;
}

Nanos Router::next_deadline() const {
  return std::min({holds_.next_deadline(), tickets_.next_deadline(), grants_.next_deadline(),
                   fetches_.next_deadline(), peers_.next_deadline(), feeds_.next_deadline()});
}

void Router::Take(const SessionOpened& opened) {
  if (auto problem = replicas_.Open(opened.session)) {
    Take(RefusedOutside{RefusedOutside::What::kConnection});
    context_.outputs->emplace_back(CloseSession{opened.session, problem->message});
    context_.outputs->emplace_back(SessionForgotten{opened.session});
  }
}

void Router::Take(SessionRequest& request) {
  std::optional<Answer> answer = ServeSession(request);
  if (!answer) return;  // an await: answered when there is something to say
  Count(request.body, answer->code);
  context_.outputs->emplace_back(SendAnswer{request.session, request.serial, *std::move(answer)});
}

void Router::Take(const SessionClosed& closed) {
  Session* session = replicas_.Find(closed.session);
  if (session == nullptr || !session->open) return;
  session->open = false;
  LoseSession(*session);
  context_.Reached(CoreStep::kSessionClosed);
  // Pages are touched only under a hold: who has none left needs no life line any more.
  if (session->replica == nullptr || !holds_.HoldsAny(session->replica->number, session->id)) {
    session->alive = false;
  }
  if (auto gone = replicas_.Prune(session)) holds_.Forget(*gone);
}

void Router::Take(const ProcessExited& exited) {
  Session* session = replicas_.Find(exited.session);
  if (session == nullptr || !session->alive) return;
  session->alive = false;
  LoseSession(*session);
  if (session->replica != nullptr) holds_.ReleaseAllOf(session->replica->number, session->id);
  context_.Reached(CoreStep::kProcessExited);
  if (auto gone = replicas_.Prune(session)) holds_.Forget(*gone);
}

// Its replica can complete nothing without it; without a scheduler nobody can settle either.
void Router::LoseSession(const Session& session) {
  if (session.replica == nullptr) return;
  holds_.EndClaimsOf(session.replica->number);
  RefuseAwaits(tickets_.ReplicaOver(session.replica->number), "its replica has lost a session");
  if (!session.schedules()) return;
  ledger_.SettleAll(session.replica->number);
  feeds_.AccountChanged();
}

void Router::Take(const ExtentReady& ready) {
  if (!context_.cache.AddExtent(ready.extent)) {
    context_.Log(LogLine::Level::kError, "extent.refused",
                 {{"extent", Text(ready.extent)}, {"why", "no memory for its page table"}});
    return;
  }
  ++extents_;
  context_.Reached(CoreStep::kExtentAdded);
}

void Router::Take(const RefusedOutside& refused) {
  ++context_.counters.refused_outside[static_cast<size_t>(refused.what)];
}

void Router::Take(const DrainRequested&) {
  if (draining_) return;
  draining_ = true;
  tickets_.AllDue();
  LeaveCluster();
  context_.Log(LogLine::Level::kInfo, "drain.started", {});
  context_.Reached(CoreStep::kDrainStarted);
}

void Router::Count(const RequestBody& body, Code code) {
  CoreCounters& counters = context_.counters;
  if (code == Code::kExpired) ++counters.requests_expired;
  const bool attach = std::holds_alternative<AttachRequest>(body);
  (attach ? counters.attach_refused : counters.requests_refused).Add(code);
}

std::optional<Answer> Router::ServeSession(SessionRequest& request) {
  Session* session = replicas_.Find(request.session);
  if (session == nullptr || !session->open) {
    return Refusal(Invalid(Text("session ", request.session, " is not open: connect first")));
  }
  if (!session->alive) {
    return Refusal(Unavailable(Text("the process of session ", session->id, " has gone")));
  }
  if (request.deadline != 0 && request.deadline <= context_.now) {
    return ServeExpired(*session, request);
  }
  if (!session->attached) {
    if (auto* attach = std::get_if<AttachRequest>(&request.body)) {
      return ServeAttach(session, *attach);
    }
    return Refusal(Invalid("a message before attach found: attach first"));
  }
  if (session->replica == nullptr) {
    return Refusal(Invalid(
        Text("session ", session->id, " was replaced by a newer one: attach on a new connection")));
  }
  return std::visit(
      [&](auto& body) -> std::optional<Answer> {
        if constexpr (std::is_same_v<std::decay_t<decltype(body)>, AwaitRequest>) {
          return Serve(*session, request.serial, body);
        } else {
          return Serve(*session, body);
        }
      },
      request.body);
}

// Nothing is executed; but an End says that pages are touched no more, which is true however late,
// and tokens that were decoded and not taken must never be skipped in silence.
Answer Router::ServeExpired(const Session& session, const SessionRequest& request) {
  if (session.replica != nullptr) {
    if (const auto* end = std::get_if<EndRequest>(&request.body)) {
      const Worker worker{session.replica->number, session.id, session.shard};
      for (const EndItem& item : end->items) {
        EndItem bare;
        bare.claim = item.claim;
        const bool sound = !holds_.CheckEnd(worker, item).has_value();
        holds_.End(worker, sound ? item : bare, /*too_late=*/true);
      }
    }
    if (const auto* reserve = std::get_if<ReserveRequest>(&request.body)) {
      StopGrowth(session, *reserve);
    }
  }
  return Refusal({Code::kExpired, Text("the deadline passed ", context_.now - request.deadline,
                                       " ns ago: not executed, allow more time")});
}

Answer Router::ServeAttach(Session* session, const AttachRequest& attach) {
  std::variant<Replicas::Plan, Problem> checked =
      draining_ ? Unavailable("the node is draining: go on without the cache")
                : replicas_.Check(attach);
  if (auto* problem = std::get_if<Problem>(&checked)) {
    context_.Log(LogLine::Level::kWarning, "attach.refused",
                 {{"session", Text(session->id)},
                  {"replica", Quotable(attach.replica_key, limits::kReplicaKeyBytes)},
                  {"why", problem->message}});
    context_.Reached(CoreStep::kAttachRefused);
    return Refusal(std::move(*problem));
  }
  const auto& plan = std::get<Replicas::Plan>(checked);
  Session* displaced = plan.displaced;
  if (displaced != nullptr) {
    LoseSession(*displaced);
    holds_.ReleaseAllOf(displaced->replica->number, displaced->id);
    context_.Reached(CoreStep::kSessionReplaced);
  }
  replicas_.Attach(plan, attach, session);
  if (displaced != nullptr) {
    if (displaced->open) {
      context_.outputs->emplace_back(
          CloseSession{displaced->id, Text("session ", session->id, " has taken its place")});
    }
    replicas_.Prune(displaced);
  }
  return {Code::kOk, "", AttachAnswer{session->id, limits::kProtocolVersion}};
}

CoreStatus Router::status(Nanos now) const {
  CoreStatus status;
  status.leases = holds_.leases();
  status.reservations = holds_.reservations();
  status.holds = holds_.holds();
  status.tickets = tickets_.count();
  status.grants = grants_.count();
  status.requests = ledger_.open();
  status.sessions = replicas_.sessions();
  status.replicas = replicas_.replicas();
  status.extents = extents_;
  status.extents_unowned = context_.cache.extents_unowned();
  status.quarantined_bytes = holds_.quarantined_bytes();
  status.draining = draining_;
  status.counters = context_.counters;
  status.account = ledger_.account();
  for (uint32_t i = 0; i < spaces_.count(); ++i) {
    const SpaceId id(i);
    SpaceStatus space{
        id, context_.cache.shape(id), {}, context_.cache.stats(id), ledger_.account(id)};
    space.shape.identity.clear();
    const auto& fields = spaces_.description(id).fields;
    space.fields.assign(fields.begin(), fields.end());
    const PageCounts& pages = space.stats.pages;
    status.pages.free += pages.free;
    status.pages.reserved += pages.reserved;
    status.pages.receiving += pages.receiving;
    status.pages.committed += pages.committed;
    status.pages.held += pages.held;
    status.pages.quarantined += pages.quarantined;
    status.spaces.push_back(std::move(space));
  }
  status.cluster = StatusOfCluster(now == 0 ? context_.now : now);
  return status;
}

ClusterStatus Router::StatusOfCluster(Nanos now) const {
  ClusterStatus cluster;
  cluster.started = peers_.started();
  if (!cluster.started) return cluster;
  cluster.totals = Totals();
  cluster.grants = grants_.count();
  cluster.granted_bytes = grants_.bytes();
  cluster.guests = guests_.count();
  cluster.feeds = feeds_.streams();
  cluster.told_blocks = feeds_.told();
  cluster.directory_blocks = peers_.directory_blocks();
  cluster.directory_bytes = peers_.directory_bytes();
  cluster.fetches = fetches_.count();
  cluster.peers = peers_.status(now);
  return cluster;
}

std::string Router::SelfCheck() const {
  if (std::string broken = replicas_.SelfCheck(); !broken.empty()) return broken;
  if (std::string broken = ledger_.SelfCheck(); !broken.empty()) return broken;
  Holds::Others others;
  grants_.AddHeld(&others.held);
  fetches_.AddHeld(&others.held);
  others.writing = fetches_.PagesToWrite();
  others.pinning = grants_.count() + fetches_.standing();
  if (std::string broken = holds_.SelfCheck(std::move(others)); !broken.empty()) return broken;
  if (std::string broken = grants_.SelfCheck(); !broken.empty()) return broken;
  if (std::string broken = fetches_.SelfCheck(); !broken.empty()) return broken;
  if (std::string broken = peers_.SelfCheck(); !broken.empty()) return broken;
  if (std::string broken = feeds_.SelfCheck(); !broken.empty()) return broken;
  if (std::string broken = tickets_.SelfCheck(); !broken.empty()) return broken;
  return context_.cache.CheckInvariants();
}

}  // namespace pando
