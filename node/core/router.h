// The router behind NodeCore: takes one input at a time, asks the machines in turn, makes the
// answers. What each message means is client.proto's; when which machine may act is theirs.
//
//   input ──► router ──┬─► Replicas   who is that, may it claim?
//                      ├─► Ledger     its open requests, the account
//                      ├─► Tickets    who computes what, who waits for it
//                      ├─► PrefixCache (in the context) what is there, what gets pages
//                      ├─► Holds      claims, holds, memory back
//                      ├─► Peers      other nodes, what they have (the directory)
//                      ├─► Fetches    blocks that come from them
//                      └─► Guests, Feeds, Grants: what other nodes are told and given
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_ROUTER_H_
#define PANDO_NODE_CORE_ROUTER_H_

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/core/context.h"
#include "node/core/feeds.h"
#include "node/core/fetches.h"
#include "node/core/grants.h"
#include "node/core/guests.h"
#include "node/core/holds.h"
#include "node/core/ledger.h"
#include "node/core/node_core.h"
#include "node/core/peers.h"
#include "node/core/replicas.h"
#include "node/core/spaces.h"
#include "node/core/tickets.h"

namespace pando {

class Router {
 public:
  Router(const NodeCore::Options& options, StepListener* steps);

  void Step(Nanos now, Input input, std::vector<Output>* outputs);
  Nanos next_deadline() const;
  CoreStatus status(Nanos now) const;
  std::string SelfCheck() const;
  const PrefixCache& cache() const { return context_.cache; }
  std::vector<std::string> PeersHolding(uint64_t key) const { return peers_.Holding(key); }

 private:
  void Take(const SessionOpened& opened);
  void Take(SessionRequest& request);
  void Take(const SessionClosed& closed);
  void Take(const ProcessExited& exited);
  void Take(const ExtentReady& ready);
  void Take(const RefusedOutside& refused);
  void Take(const DrainRequested& drain);
  void Take(const Tick&) {}

  // Between nodes (router_peers.cc).
  void Take(const ClusterStarted& started);
  void Take(const PeersChanged& changed);
  void Take(PeerAsks& asks);
  void Take(const FeedAsked& asked);
  void Take(const FeedReady& ready);
  void Take(const FeedDropped& dropped);
  void Take(PeerAnswered& answered);
  void Take(FeedArrived& arrived);
  void Take(const FeedEnded& ended);
  void Take(const TransferHappened& happened);
  void Take(const TransferRuns& transfer) { transfer_runs_ = transfer.runs; }
  HelloAnswer ServePeer(GrantId fresh, const HelloRequest& request);
  GrantAnswer ServePeer(GrantId fresh, GrantRequest& request);
  DoneAnswer ServePeer(GrantId fresh, const DoneRequest& request);
  GoodbyeAnswer ServePeer(GrantId fresh, const GoodbyeRequest& request);
  PeerHello Hello() const;
  NodeTotals Totals() const;
  ClusterStatus StatusOfCluster(Nanos now) const;
  std::optional<std::string> CheckGuest(BootId requester, BootId owner);
  void LogRefused(const std::string& name, const std::string& why);
  void GuestOver(BootId guest, const std::string& why);
  void SpreadPeerNews();
  void LeaveCluster();
  // As a maker that tickets wait for.
  static ReplicaNumber NumberOf(PeerId peer) {
    return ReplicaNumber(uint64_t{1} << 62 | peer.value());
  }

  std::optional<Answer> ServeSession(SessionRequest& request);
  Answer ServeExpired(const Session& session, const SessionRequest& request);
  Answer ServeAttach(Session* session, const AttachRequest& attach);
  void Count(const RequestBody& body, Code code);

  Answer Serve(const Session& session, AttachRequest& attach);  // a second one
  Answer Serve(const Session& session, AcquireRequest& acquire);
  std::optional<Answer> Serve(const Session& session, uint64_t serial, AwaitRequest& await);
  Answer Serve(const Session& session, ProbeRequest& probe);
  Answer Serve(const Session& session, ReserveRequest& reserve);
  Answer Serve(const Session& session, BeginRequest& begin);
  Answer Serve(const Session& session, EndRequest& end);
  Answer Serve(const Session& session, AbortRequest& abort);
  Answer Serve(const Session& session, SettleRequest& settle);

  std::optional<Problem> CheckMayClaim(const Session& session) const;
  AcquireAnswer MatchAndLease(const Session& session, const AcquireRequest& acquire,
                              const OpenRequest& opened);
  // Tickets (router_tickets.cc).
  BlockCount LoadLimit(SpaceId space, uint64_t tokens) const;
  std::vector<uint64_t> MissingKeys(const OpenRequest& request, const Match& match,
                                    BlockCount blocks) const;
  std::optional<ReplicaNumber> FindMaker(const Replica& replica, const OpenRequest& request,
                                         const Match& match, bool may_fetch);
  void WatchMissing(const Session& session, const AcquireRequest& acquire,
                    const OpenRequest& opened, AcquireAnswer* answer);
  void Compute(const Session& session, const RequestRef& ref, const OpenRequest& request,
               const Match& match);
  void AnswerDueTickets();
  void LookAgain(uint64_t ticket);
  void AnswerAwait(const Tickets::Wait& wait, Answer answer);
  void RefuseAwaits(const std::vector<Tickets::Wait>& waits, const char* why);

  void LeaseMatched(const AcquireRequest& acquire, const OpenRequest& opened, ReplicaNumber replica,
                    Nanos deadline, const Match& match, AcquireAnswer* answer);
  std::optional<Problem> CheckReserve(const Session& session, const ReserveRequest& reserve) const;
  Answer ReserveForRequest(const Session& session, const ReserveRequest& reserve);
  Answer ReservePages(const Session& session, const ReserveRequest& reserve, const Prompt& prompt,
                      uint64_t request_serial);
  void SayFull(SpaceId space, uint64_t blocks_wanted);
  void StopGrowth(const Session& session, const ReserveRequest& reserve);
  static void LearnPrefillRate(Replica* replica, uint64_t prompt, const SettleRequest& settle);
  bool OverCap(ReplicaNumber replica);
  Nanos ClaimDeadline(Nanos asked) const;
  void LoseSession(const Session& session);

  CoreContext context_;
  Ledger ledger_;
  Feeds feeds_;
  Tickets tickets_;
  Holds holds_;
  Spaces spaces_;
  Replicas replicas_;
  std::set<std::string> refused_;  // nodes, with why: logged
  Guests guests_;
  Grants grants_;
  Peers peers_;
  Fetches fetches_;
  const std::string key_secret_;
  Nanos started_at_ = 0;
  bool draining_ = false;
  bool transfer_runs_ = true;
  uint64_t extents_ = 0;
  std::vector<Nanos> full_said_;  // by space: when the log last said that it is full; 0: never
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_ROUTER_H_
