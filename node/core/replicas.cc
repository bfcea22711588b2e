#include "node/core/replicas.h"

#include <algorithm>
#include <utility>

#include "node/core/limits.h"
#include "radix/base/check.h"

namespace pando {
namespace {

bool Serves(const Session* session) {
  return session != nullptr && session->open && session->alive;
}

std::string PlaceName(const AttachRequest& request) {
  std::string name(RoleName(request.role));
  if (request.role == Role::kWorker) name += Text(" ", request.shard);
  return Text(name, " of replica \"", Quotable(request.replica_key), "\"");
}

}  // namespace

bool Replica::complete() const {
  return std::all_of(places.begin(), places.end(), Serves);
}

std::optional<Problem> Replicas::Open(SessionId id) {
  if (sessions_.size() >= limits::kSessions) {
    return OverLimit("sessions", sessions_.size() + 1, limits::kSessions, "on one node",
                     "close those that are done");
  }
  auto session = std::make_unique<Session>();
  session->id = id;
  const bool added = sessions_.emplace(id, std::move(session)).second;
  PANDO_CHECK(added) << "session " << id << " opened twice";
  context_->Reached(CoreStep::kSessionOpened);
  return std::nullopt;
}

Session* Replicas::Find(SessionId id) {
  auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

std::variant<Replicas::Plan, Problem> Replicas::Check(const AttachRequest& request) {
  if (auto problem = CheckAttachForm(request)) return *std::move(problem);
  Plan plan;
  if (auto it = by_key_.find(request.replica_key); it != by_key_.end()) {
    plan.replica = it->second.get();
    plan.merged = plan.replica->description;
  } else {
    plan.merged.shards = request.world_size;
  }
  if (auto problem = MergeDescription(request, &plan.merged)) return *std::move(problem);
  if (auto problem = CheckPlace(request, &plan)) return *std::move(problem);
  if (auto problem = ResolveSpace(request, &plan)) return *std::move(problem);
  return plan;
}

// Only the occupant's own process knows that it touches its pages no more.
std::optional<Problem> Replicas::CheckReplaces(const AttachRequest& request,
                                               const Session& occupant) {
  if (request.replaces == SessionId()) {
    return Unavailable(Text(PlaceName(request), " is session ", occupant.id,
                            ", whose process lives: end that process first, or choose another "
                            "replica key"));
  }
  if (occupant.id != request.replaces) {
    return Invalid(Text("session ", request.replaces, " found to be replaced, but ",
                        PlaceName(request), " is session ", occupant.id,
                        ": name the session whose copies have drained"));
  }
  if (request.process == 0 || request.process != occupant.process) {
    return Invalid(Text("session ", occupant.id, " of another process found to be replaced, one ",
                        "of the same process allowed: end that process first, or choose another ",
                        "replica key"));
  }
  return std::nullopt;
}

std::optional<Problem> Replicas::CheckPlace(const AttachRequest& request, Plan* plan) const {
  plan->place = request.role == Role::kWorker ? 1 + request.shard.value() : 0;
  if (plan->replica == nullptr) return std::nullopt;
  const bool single = request.role == Role::kBoth;
  if (single != plan->replica->single) {
    return Invalid(Text("role ", RoleName(request.role), " found, replica \"",
                        Quotable(request.replica_key), "\" is made of ",
                        single ? "a scheduler and workers" : "one session of role both",
                        ": attach with one of those, or choose another replica key"));
  }
  Session* occupant = plan->replica->places[plan->place];
  if (occupant != nullptr && occupant->alive) {
    if (auto problem = CheckReplaces(request, *occupant)) return problem;
  }
  plan->displaced = occupant;
  return std::nullopt;
}

// The space is fixed by the session that completes the replica.
std::optional<Problem> Replicas::ResolveSpace(const AttachRequest& request, Plan* plan) {
  if (plan->replica != nullptr && plan->replica->space) {
    const SpaceDescription& known = plan->replica->description;
    for (const auto& [name, value] : request.fields) {
      if (known.fields.contains(name)) continue;
      return Invalid(Text("field \"", Quotable(name), "\" is \"", Quotable(value),
                          "\", no session of replica \"", Quotable(request.replica_key),
                          "\" said it before its space was chosen: attach ",
                          "with the same fields, or choose another replica key"));
    }
    plan->space = plan->replica->space;
    return std::nullopt;
  }
  if (plan->merged.block_tokens == 0 || plan->merged.page_bytes == Bytes()) return std::nullopt;
  if (plan->replica == nullptr) {
    if (request.role != Role::kBoth) return std::nullopt;
  } else {
    const auto& places = plan->replica->places;
    for (size_t i = 0; i < places.size(); ++i) {
      if (i != plan->place && !Serves(places[i])) return std::nullopt;
    }
  }
  auto found = spaces_->FindOrAdd(plan->merged);
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  plan->space = std::get<SpaceId>(found);
  return std::nullopt;
}

void Replicas::Attach(const Plan& plan, const AttachRequest& request, Session* session) {
  Replica* replica = plan.replica;
  if (replica == nullptr) {
    auto made = std::make_unique<Replica>();
    replica = made.get();
    replica->number = ReplicaNumber(++last_replica_);
    replica->key = request.replica_key;
    replica->single = request.role == Role::kBoth;
    replica->places.resize(replica->single ? 1 : 1 + request.world_size);
    replica->left.resize(replica->places.size());
    by_key_.emplace(replica->key, std::move(made));
  }
  replica->description = plan.merged;
  replica->space = plan.space;
  if (request.prefill_tokens_per_s != 0) {
    replica->prefill_tokens_per_s = request.prefill_tokens_per_s;
  }
  if (plan.displaced != nullptr) plan.displaced->replica = nullptr;
  replica->places[plan.place] = session;
  session->replica = replica;
  session->role = request.role;
  session->shard = request.shard;
  session->process = request.process;
  session->attached = true;
  context_->Log(LogLine::Level::kInfo, "session.attached",
                {{"session", Text(session->id)},
                 {"replica", replica->key},
                 {"role", std::string(RoleName(request.role))},
                 {"shard", Text(request.shard)}});
  context_->Reached(CoreStep::kAttachAccepted);
  if (!replica->complete() || !replica->space) return;
  context_->Log(LogLine::Level::kInfo, "replica.complete",
                {{"replica", replica->key}, {"space", Text(*replica->space)}});
  context_->Reached(CoreStep::kReplicaComplete);
}

std::optional<Problem> Replicas::CheckReady(const Replica& replica) {
  for (size_t i = 0; i < replica.places.size(); ++i) {
    if (Serves(replica.places[i])) continue;
    const bool gone = replica.places[i] != nullptr || replica.left[i];
    const std::string place = i == 0 ? "its scheduler" : Text("its worker ", i - 1);
    return Unavailable(Text("replica \"", Quotable(replica.key), "\" is incomplete: ", place,
                            gone ? " is gone" : " has not attached",
                            ": go on without the cache until it attaches"));
  }
  if (replica.space) return std::nullopt;
  const bool blocks = replica.description.block_tokens != 0;
  return Unavailable(Text("no session of replica \"", Quotable(replica.key), "\" said ",
                          blocks ? "page_bytes" : "block_tokens",
                          ": attach one of its sessions with it"));
}

std::optional<ReplicaNumber> Replicas::Prune(Session* session) {
  Replica* replica = session->replica;
  std::optional<ReplicaNumber> gone;
  if (replica != nullptr && !session->alive) {
    const auto living = [](const Session* s) { return s != nullptr && s->alive; };
    if (std::none_of(replica->places.begin(), replica->places.end(), living)) {
      for (Session* member : replica->places) {
        if (member != nullptr) member->replica = nullptr;
      }
      gone = replica->number;
      context_->Log(LogLine::Level::kInfo, "replica.gone", {{"replica", replica->key}});
      by_key_.erase(by_key_.find(replica->key));
      context_->Reached(CoreStep::kReplicaGone);
    } else if (!session->open) {
      const auto place = std::find(replica->places.begin(), replica->places.end(), session);
      *place = nullptr;
      replica->left[static_cast<size_t>(place - replica->places.begin())] = true;
      session->replica = nullptr;
    }
  }
  if (!session->open && session->replica == nullptr) {
    context_->outputs->emplace_back(SessionForgotten{session->id});
    sessions_.erase(session->id);
  }
  return gone;
}

std::string Replicas::SelfCheck() const {
  for (const auto& [key, replica] : by_key_) {
    bool living = false;
    for (const Session* member : replica->places) {
      if (member == nullptr) continue;
      living |= member->alive;
      if (member->replica != replica.get()) {
        return Text("session ", member->id, " is not in replica \"", key, "\" it has a place in");
      }
    }
    if (!living) return Text("replica \"", key, "\" has no living process");
  }
  for (const auto& [id, session] : sessions_) {
    if (session->replica == nullptr && !session->open) return Text("session ", id, " was kept");
  }
  return "";
}

}  // namespace pando
