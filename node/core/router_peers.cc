// The router's part between nodes: what peers ask and tell, and what the transfer engine did.
#include <algorithm>
#include <utility>

#include "node/core/hello.h"
#include "node/core/limits.h"
#include "node/core/problem.h"
#include "node/core/router.h"

namespace pando {
namespace {

constexpr size_t kRefusedMax = 256;  // of names with reasons: more are not logged

}  // namespace

void Router::Take(const ClusterStarted& started) {
  PeerHello mine = FormulasOf(key_secret_);
  mine.node_name = started.node_name;
  mine.boot = started.boot;
  mine.data_address = started.data_address;
  peers_.Start(started, std::move(mine));
  feeds_.Start(started.boot, peers_.Pulls(), [this] { return Totals(); });
  started_at_ = context_.now;
}

void Router::Take(const PeersChanged& changed) {
  peers_.Take(changed);
}

// What this node has counted, for those who add up the cluster.
NodeTotals Router::Totals() const {
  NodeTotals totals;
  totals.account = ledger_.account();
  for (uint32_t i = 0; i < spaces_.count(); ++i) {
    const SpaceStats stats = context_.cache.stats(SpaceId(i));
    const PageCounts& pages = stats.pages;
    totals.pages += pages.free + pages.reserved + pages.receiving + pages.committed + pages.held +
                    pages.quarantined;
    totals.pages_free += pages.free;
    totals.blocks += stats.blocks;
  }
  totals.uptime_ms = static_cast<uint64_t>(context_.now - started_at_) / 1'000'000;
  return totals;
}

// ---- As the owner

void Router::Take(PeerAsks& asks) {
  PeerAnswerBody answer = std::visit(
      [&](auto& request) -> PeerAnswerBody { return ServePeer(asks.fresh, request); }, asks.body);
  context_.outputs->emplace_back(AnswerPeer{asks.call, std::move(answer)});
}

HelloAnswer Router::ServePeer(GrantId, const HelloRequest& request) {
  HelloAnswer answer;
  answer.hello = Hello();
  if (!peers_.started() || draining_) {
    answer.code = PeerCode::kBusy;
    answer.message = "the node is starting or draining: say hello again later";
    return answer;
  }
  if (request.hello.boot == answer.hello.boot) return answer;  // its own voice
  if (auto problem = CheckHello(answer.hello, request.hello)) {
    answer.code = PeerCode::kIncompatible;
    answer.message = *std::move(problem);
    LogRefused(request.hello.node_name, answer.message);
    return answer;
  }
  const BootId named = guests_.Named(request.hello.node_name);
  if (named != request.hello.boot && feeds_.streams(named) > 0) {
    answer.code = PeerCode::kBusy;
    answer.message = Text("another life of a node named ", Quotable(request.hello.node_name),
                          " is connected: give each node its own --name; if it was restarted, its "
                          "old connection will soon be over");
    LogRefused(request.hello.node_name, answer.message);
    return answer;
  }
  if (const auto over = guests_.Enter(request.hello.node_name, request.hello.boot)) {
    GuestOver(*over, "another life of this node, or too many nodes, took its place");
  }
  return answer;
}

// Each once: who is refused comes again.
void Router::LogRefused(const std::string& name, const std::string& why) {
  if (refused_.size() >= kRefusedMax || !refused_.insert(name + why).second) return;
  context_.Log(LogLine::Level::kWarning, "peer.refused",
               {{"peer", Quotable(name)}, {"why", Quotable(why, 400)}});
}

PeerHello Router::Hello() const {
  PeerHello hello = peers_.mine();
  for (uint32_t i = 0; i < spaces_.count(); ++i) {
    const SpaceShape& shape = context_.cache.shape(SpaceId(i));
    hello.spaces.push_back({shape.identity, shape.block_tokens, shape.shards, shape.page_bytes});
  }
  return hello;
}

void Router::GuestOver(BootId guest, const std::string& why) {
  grants_.RevokeAllOf(guest);
  feeds_.EndAllOf(guest, why);
}

// Whether the requester may ask this life of this node anything.
std::optional<std::string> Router::CheckGuest(BootId requester, BootId owner) {
  if (!peers_.started()) return "this node is in no cluster";
  if (owner != peers_.mine().boot) return "another life of this node was asked: say hello again";
  if (!guests_.Heard(requester)) return "this requester is not known: say hello first";
  return std::nullopt;
}

GrantAnswer Router::ServePeer(GrantId fresh, GrantRequest& request) {
  GrantAnswer answer;
  if (auto problem = CheckGuest(request.requester, request.boot)) {
    answer.code = PeerCode::kUnknown;
    answer.message = *std::move(problem);
  } else if (draining_) {
    answer.code = PeerCode::kBusy;
    answer.message = "the node is draining: ask another";
  } else if (!peers_.Pulls()) {
    answer.code = PeerCode::kMiss;
    answer.message = "this node shares no pages";
  } else {
    answer = grants_.Ask(fresh, std::move(request));
  }
  answer.boot = peers_.mine().boot;
  const bool refused = answer.code != PeerCode::kOk && answer.code != PeerCode::kMiss &&
                       answer.code != PeerCode::kBusy;
  context_.counters.grants_refused += refused ? 1 : 0;
  return answer;
}

DoneAnswer Router::ServePeer(GrantId, const DoneRequest& request) {
  if (!guests_.Heard(request.requester)) {
    return {static_cast<uint32_t>(request.grants.size())};
  }
  return grants_.Done(request);
}

GoodbyeAnswer Router::ServePeer(GrantId, const GoodbyeRequest& request) {
  if (guests_.Leave(request.boot)) {
    GuestOver(request.boot, "it said goodbye");
    peers_.Left(request.boot);
  }
  return {};
}

void Router::Take(const FeedAsked& asked) {
  const auto refuse = [&](PeerCode code, std::string why) {
    context_.outputs->emplace_back(EndFeed{asked.stream, code, std::move(why)});
  };
  const BootId guest = asked.request.requester;
  if (!peers_.started() || draining_) return refuse(PeerCode::kBusy, "not now: ask again later");
  if (!guests_.Heard(guest)) return refuse(PeerCode::kUnknown, "say hello first");
  if (feeds_.streams(guest) >= limits::kFeedsPerGuest) {
    return refuse(PeerCode::kBusy, Text(limits::kFeedsPerGuest, " feeds of this node are open"));
  }
  feeds_.Open(asked.stream, asked.request);
}

void Router::Take(const FeedReady& ready) {
  feeds_.Ready(ready.stream);
}

void Router::Take(const FeedDropped& dropped) {
  feeds_.Drop(dropped.stream);
}

// ---- As the requester

void Router::Take(PeerAnswered& answered) {
  if (peers_.Take(answered) || fetches_.Take(answered)) return;
  // A Done or Goodbye: nobody waits for it.
}

void Router::Take(FeedArrived& arrived) {
  peers_.Take(arrived);
}

void Router::Take(const FeedEnded& ended) {
  peers_.Take(ended);
}

void Router::Take(const TransferHappened& happened) {
  if (const auto* pages = std::get_if<PullPages>(&happened.event)) fetches_.Take(*pages);
  if (const auto* pull = std::get_if<PullEnded>(&happened.event)) fetches_.Take(*pull);
  if (const auto* grant = std::get_if<GrantEnded>(&happened.event)) grants_.Ended(*grant);
}

// What happened to peers in this step, for who waits for them.
void Router::SpreadPeerNews() {
  if (!peers_.started()) return;
  peers_.Turn();
  const PeerNews news = peers_.TakeNews();
  for (const PeerId peer : news.over) fetches_.PeerOver(peer);
  for (const PeerId peer : news.moved) tickets_.Moved(NumberOf(peer));
}

void Router::LeaveCluster() {
  fetches_.EndAll();
  peers_.Leave();
  grants_.RevokeAll();
  feeds_.EndAll("the node is draining");
}

}  // namespace pando
