// Replicas: who is attached. Sessions are connections; a replica is one engine on this host, made
// of a scheduler session and a worker session for each shard (or one session of role both).
//
//   opened ──Attach──► attached ──┬── socket ends, holds left ──► closed ── pidfd fires ──► gone
//                                 ├── socket ends, no hold ──────────────────────────────► gone
//                                 └── pidfd fires ──► exited ── socket ends ─────────────► gone
//
// Invariants:
//  1. A replica takes claims only while every place in it has a session whose socket is open and
//     whose process lives, and its space is known.
//  2. A place whose session is open, or holds pages in a living process, is taken over only by a
//     session that names the old one (`replaces`) and comes from the same process: nobody else
//     can say that its copies have drained.
//  3. The space's fields are the union of what the sessions said; two that contradict each other
//     are never in one replica.
//  4. The key is free again when all its sessions have gone.
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_REPLICAS_H_
#define PANDO_NODE_CORE_REPLICAS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "node/core/context.h"
#include "node/core/problem.h"
#include "node/core/spaces.h"

namespace pando {

struct Replica;

struct Session {
  SessionId id;
  Replica* replica = nullptr;  // null before Attach, and after another took its place
  Role role = Role::kBoth;
  ShardId shard;
  uint64_t process = 0;  // AttachRequest::process
  bool attached = false;
  bool open = true;   // its socket
  bool alive = true;  // its process, from Attach on, as far as it could touch pages

  bool schedules() const { return role != Role::kWorker; }
  bool works() const { return role != Role::kScheduler; }
};

struct Replica {
  ReplicaNumber number;
  std::string key;
  bool single = false;           // of one session of role both
  SpaceDescription description;  // what the sessions said so far
  std::optional<SpaceId> space;  // once it was complete and all was known
  std::vector<Session*> places;  // scheduler (or both), then the workers by shard; null: free
  std::vector<bool> left;        // parallel with places: somebody was there, and is gone
  uint64_t prefill_tokens_per_s = 0;

  bool complete() const;
};

class Replicas {
 public:
  Replicas(CoreContext* context, Spaces* spaces) : context_(context), spaces_(spaces) {}

  // nullopt, or why there cannot be another session.
  std::optional<Problem> Open(SessionId session);
  Session* Find(SessionId session);

  // What an accepted Attach will do.
  struct Plan {
    Replica* replica = nullptr;  // null: a new one
    SpaceDescription merged;
    std::optional<SpaceId> space;
    size_t place = 0;
    Session* displaced = nullptr;  // whose place it takes
  };
  std::variant<Plan, Problem> Check(const AttachRequest& request);
  // The displaced session, if any, must have lost its claims and holds before.
  void Attach(const Plan& plan, const AttachRequest& request, Session* session);

  // What keeps the session's replica from making claims, if anything.
  static std::optional<Problem> CheckReady(const Replica& replica);

  // Forgets the session, and says so, if nothing of it is left, and its replica if all its
  // processes have gone; returns that replica's number.
  std::optional<ReplicaNumber> Prune(Session* session);

  uint64_t sessions() const { return sessions_.size(); }
  uint64_t replicas() const { return by_key_.size(); }
  std::string SelfCheck() const;

 private:
  static std::optional<Problem> CheckReplaces(const AttachRequest& request,
                                              const Session& occupant);
  std::optional<Problem> CheckPlace(const AttachRequest& request, Plan* plan) const;
  std::optional<Problem> ResolveSpace(const AttachRequest& request, Plan* plan);

  CoreContext* context_;
  Spaces* spaces_;
  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<std::string, std::unique_ptr<Replica>> by_key_;
  uint64_t last_replica_ = 0;
};

// What is wrong with an Attach by itself, whoever else is there.
std::optional<Problem> CheckAttachForm(const AttachRequest& request);
// Adds what `request` says of the space; a contradiction is a problem that names the field.
std::optional<Problem> MergeDescription(const AttachRequest& request, SpaceDescription* merged);

std::string_view RoleName(Role role);

}  // namespace pando

#endif  // PANDO_NODE_CORE_REPLICAS_H_
