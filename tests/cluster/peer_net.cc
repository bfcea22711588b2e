#include "tests/cluster/peer_net.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "radix/base/check.h"

namespace pando::testing {

uint32_t PeerNet::Add(Member member) {
  nodes_.emplace_back();
  nodes_.back().member = std::move(member);
  return static_cast<uint32_t>(nodes_.size() - 1);
}

void PeerNet::Start(uint32_t member, BootId boot) {
  Node& node = nodes_[member];
  const std::string address = node.member.name + "/" + std::to_string(++node.lives);
  node.engine = transfers_.Add(address, [&node] { node.events = true; });
  node.member.step(ClusterStarted{node.member.name, boot, address, /*seed=*/boot.value()});
  PeersChanged peers;
  for (uint32_t other = 0; other < nodes_.size(); ++other) {
    if (other != member) peers.peers.push_back({IdOf(other), nodes_[other].member.name});
  }
  node.member.step(std::move(peers));
}

void PeerNet::Crash(uint32_t member) {
  Node& node = nodes_[member];
  node.engine.reset();
  node.events = false;
  node.calls.clear();
  Lose([&](const Message& m) { return m.from == member || m.to == member; });
  std::erase_if(serving_, [&](const auto& served) { return served.second.requester == member; });
  for (auto it = feeds_.begin(); it != feeds_.end();) {
    const auto [serving, feed] = *it++;
    if (feed.owner == member) EndFeedOf(serving, "connection reset");
    if (feed.reader != member) continue;
    feeds_.erase(serving);
    if (up(feed.owner)) nodes_[feed.owner].member.step(FeedDropped{serving});
  }
  for (uint32_t other = 0; other < nodes_.size(); ++other) {
    std::vector<uint64_t> failed;
    for (const auto& [call, open] : nodes_[other].calls) {
      if (open.to == member) failed.push_back(call);
    }
    for (const uint64_t call : failed) FailCall(other, call, "connection reset");
  }
}

// What is on its way does not arrive. Of a closed or refused feed the other end hears anyway.
template <class Lost>
void PeerNet::Lose(const Lost& lost) {
  std::vector<Message> gone;
  for (const Message& message : messages_) {
    if (lost(message)) gone.push_back(message);
  }
  std::erase_if(messages_, lost);
  for (const Message& message : gone) {
    const auto* subscribe = std::get_if<Subscribe>(&message.content);
    if (subscribe != nullptr && up(message.from)) {
      nodes_[message.from].member.step(FeedEnded{subscribe->stream, "connection reset"});
    }
    const auto* unsubscribe = std::get_if<Unsubscribe>(&message.content);
    if (unsubscribe != nullptr && up(message.to)) {
      nodes_[message.to].member.step(FeedDropped{unsubscribe->stream});
    }
  }
}

void PeerNet::Break(uint32_t a, uint32_t b) {
  const auto between = [&](uint32_t one, uint32_t other) {
    return (one == a && other == b) || (one == b && other == a);
  };
  Lose([&](const Message& m) { return between(m.from, m.to); });
  for (auto it = feeds_.begin(); it != feeds_.end();) {
    const auto [serving, feed] = *it++;
    if (!between(feed.owner, feed.reader)) continue;
    EndFeedOf(serving, "connection reset");
    if (up(feed.owner)) nodes_[feed.owner].member.step(FeedDropped{serving});
  }
  for (const uint32_t member : {a, b}) {
    std::vector<uint64_t> failed;
    for (const auto& [call, open] : nodes_[member].calls) {
      if (between(member, open.to)) failed.push_back(call);
    }
    for (const uint64_t call : failed) FailCall(member, call, "connection reset");
  }
  if (up(a) && up(b)) transfers_.Break(nodes_[a].engine->address(), nodes_[b].engine->address());
}

void PeerNet::FailCall(uint32_t member, uint64_t call, const std::string& why) {
  if (nodes_[member].calls.erase(call) == 0) return;
  nodes_[member].member.step(PeerAnswered{call, std::nullopt, why});
}

void PeerNet::EndFeedOf(uint64_t serving, const std::string& why) {
  const auto it = feeds_.find(serving);
  if (it == feeds_.end()) return;
  const Feed feed = it->second;
  feeds_.erase(it);
  if (up(feed.reader)) nodes_[feed.reader].member.step(FeedEnded{feed.stream, why});
}

std::map<uint64_t, PeerNet::Feed>::iterator PeerNet::FindFeed(uint32_t reader, uint64_t stream) {
  return std::find_if(feeds_.begin(), feeds_.end(), [&](const auto& feed) {
    return feed.second.reader == reader && feed.second.stream == stream;
  });
}

void PeerNet::Partition(uint32_t a, uint32_t b, bool parted) {
  for (const auto& pair : {std::pair(a, b), std::pair(b, a)}) {
    parted ? void(parted_.insert(pair)) : void(parted_.erase(pair));
  }
  if (up(a) && up(b))
    transfers_.Partition(nodes_[a].engine->address(), nodes_[b].engine->address(), parted);
}

// ---- Outputs

bool PeerNet::Carry(uint32_t member, Output* output) {
  return std::visit([&](auto& body) { return Take(member, &body); }, *output);
}

void PeerNet::Send(uint32_t from, uint32_t to, decltype(Message::content) content) {
  const Way way = on_send ? on_send(from, to) : Way{};
  Message message{from, to, std::move(content), now_ + way.delay, false};
  if (way.again && !std::holds_alternative<Subscribe>(message.content) &&
      !std::holds_alternative<Unsubscribe>(message.content) &&
      !std::holds_alternative<End>(message.content)) {
    Message copy = message;
    copy.due += *way.again;
    copy.again = true;
    messages_.push_back(std::move(copy));
  }
  messages_.push_back(std::move(message));
}

bool PeerNet::Take(uint32_t member, AskPeer* ask) {
  const uint32_t to = MemberOf(ask->peer);
  ++asked_;
  nodes_[member].calls.emplace(ask->call, Call{to, ask->deadline});
  Send(member, to, Ask{ask->call, std::move(ask->body)});
  return true;
}

bool PeerNet::Take(uint32_t member, AnswerPeer* answer) {
  const auto it = serving_.find(answer->call);
  if (it == serving_.end()) return true;  // its requester crashed
  Send(member, it->second.requester, Reply{it->second.call, std::move(answer->answer)});
  serving_.erase(it);
  return true;
}

bool PeerNet::Take(uint32_t member, OpenFeed* open) {
  Send(member, MemberOf(open->peer), Subscribe{open->stream, open->request});
  return true;
}

bool PeerNet::Take(uint32_t member, CloseFeed* close) {
  const auto it = FindFeed(member, close->stream);
  if (it != feeds_.end()) {
    const uint32_t owner = it->second.owner;
    Send(member, owner, Unsubscribe{it->first});
    feeds_.erase(it);
    return true;
  }
  std::erase_if(messages_, [&](const Message& m) {  // it has not arrived
    const auto* subscribe = std::get_if<Subscribe>(&m.content);
    return m.from == member && subscribe != nullptr && subscribe->stream == close->stream;
  });
  return true;
}

bool PeerNet::Take(uint32_t member, SendFeed* feed) {
  const auto it = feeds_.find(feed->stream);
  if (it == feeds_.end()) return true;
  const uint64_t serving = feed->stream;
  Send(member, it->second.reader, Piece{serving, it->second.stream, std::move(*feed)});
  return true;
}

bool PeerNet::Take(uint32_t member, EndFeed* end) {
  const auto it = feeds_.find(end->stream);
  if (it != feeds_.end()) Send(member, it->second.reader, End{end->stream, end->message});
  return true;
}

bool PeerNet::Take(uint32_t member, OfferPages* offer) {
  Offer pages{offer->grant, {}};
  for (const PageId page : offer->pages) {
    pages.pages.push_back({nodes_[member].member.page(page, offer->page_bytes)});
  }
  PANDO_CHECK(nodes_[member].engine->Start(std::move(pages))) << "more offers than a test has";
  return true;
}

bool PeerNet::Take(uint32_t member, RevokeOffer* revoke) {
  nodes_[member].engine->Revoke(revoke->grant);
  return true;
}

bool PeerNet::Take(uint32_t member, StartPull* start) {
  Pull pull{start->pull, start->address, start->grant, start->deadline, {}};
  for (const StartPull::Page& page : start->pages) {
    pull.pages.push_back(
        {page.index, page.checksum, nodes_[member].member.page(page.to, start->page_bytes)});
  }
  nodes_[member].engine->Start(std::move(pull));
  return true;
}

bool PeerNet::Take(uint32_t member, CancelPull* cancel) {
  nodes_[member].engine->Cancel(cancel->pull);
  return true;
}

// ---- Messages

bool PeerNet::TakeEvents() {
  for (uint32_t member = 0; member < nodes_.size(); ++member) {
    Node& node = nodes_[member];
    if (!node.events || node.engine == nullptr) continue;
    node.events = false;
    std::vector<TransferEvent> events;
    node.engine->TakeEvents(&events);
    for (TransferEvent& event : events) {
      if (on_event) on_event(member, &event);
      node.member.step(TransferHappened{std::move(event)});
    }
    return true;
  }
  return false;
}

// Messages of one number arrive in the order in which they were sent; without one, in any.
std::optional<uint64_t> PeerNet::OrderOf(const Message& message) const {
  if (message.again) return std::nullopt;
  if (!random) return uint64_t{message.from} << 32 | message.to;
  if (const auto* piece = std::get_if<Piece>(&message.content)) return piece->serving;
  if (const auto* end = std::get_if<End>(&message.content)) return end->serving;
  return std::nullopt;
}

// The oldest of its order, of those that can pass.
std::deque<PeerNet::Message>::iterator PeerNet::NextMessage() {
  std::vector<uint64_t> seen;
  std::vector<std::deque<Message>::iterator> heads;
  for (auto it = messages_.begin(); it != messages_.end(); ++it) {
    if (const std::optional<uint64_t> order = OrderOf(*it)) {
      if (std::find(seen.begin(), seen.end(), *order) != seen.end()) continue;
      seen.push_back(*order);
    }
    if (parted_.contains({it->from, it->to}) || it->due > now_) continue;
    if (!random) return it;
    heads.push_back(it);
  }
  return heads.empty() ? messages_.end() : heads[random(heads.size())];
}

bool PeerNet::Deliver() {
  if (TakeEvents()) return true;
  if (random && random(2) == 0 && transfers_.Step()) return true;
  const auto next = NextMessage();
  if (next != messages_.end()) {
    Message message = std::move(*next);
    messages_.erase(next);
    Arrive(std::move(message));
    return true;
  }
  return transfers_.Step();
}

// A copy of a message that has arrived, or may arrive later: nobody asked for it.
void PeerNet::ArriveAgain(const Message& message) {
  const uint32_t from = message.from, to = message.to;
  if (!up(to)) return;
  if (const auto* ask = std::get_if<Ask>(&message.content)) {
    const uint64_t serving = ++last_;
    serving_.emplace(serving, Served{from, ask->call});
    nodes_[to].member.step(PeerAsks{serving, GrantId{0x1234, serving}, ask->body});
  } else if (const auto* reply = std::get_if<Reply>(&message.content)) {
    nodes_[to].member.step(PeerAnswered{reply->call, reply->body, ""});
  } else if (const auto* piece = std::get_if<Piece>(&message.content)) {
    nodes_[to].member.step(FeedArrived{piece->stream, *piece->feed.piece, piece->feed.totals});
  }
}

void PeerNet::Arrive(Message message) {
  if (message.again) return ArriveAgain(message);
  const uint32_t from = message.from, to = message.to;
  Node& node = nodes_[to];
  if (auto* ask = std::get_if<Ask>(&message.content)) {
    if (!up(to)) return FailCall(from, ask->call, "connection refused");
    const uint64_t serving = ++last_;
    serving_.emplace(serving, Served{from, ask->call});
    node.member.step(PeerAsks{serving, GrantId{0x1234, serving}, std::move(ask->body)});
  } else if (auto* reply = std::get_if<Reply>(&message.content)) {
    if (on_answer && !on_answer(from, to, &reply->body)) return;
    if (node.calls.erase(reply->call) == 0) return;  // its deadline has passed
    node.member.step(PeerAnswered{reply->call, std::move(reply->body), ""});
  } else if (auto* subscribe = std::get_if<Subscribe>(&message.content)) {
    if (!up(to)) return nodes_[from].member.step(FeedEnded{subscribe->stream, "refused"});
    const uint64_t serving = ++last_;
    feeds_.emplace(serving, Feed{to, from, subscribe->stream});
    node.member.step(FeedAsked{serving, subscribe->request});
  } else if (auto* unsubscribe = std::get_if<Unsubscribe>(&message.content)) {
    if (up(to)) node.member.step(FeedDropped{unsubscribe->stream});
  } else if (auto* piece = std::get_if<Piece>(&message.content)) {
    const auto it = feeds_.find(piece->serving);
    if (it == feeds_.end()) return;  // closed by its reader
    const uint64_t stream = it->second.stream;
    if (!on_feed || on_feed(from, to, &piece->feed)) {
      node.member.step(FeedArrived{stream, *piece->feed.piece, piece->feed.totals});
    }
    if (up(from)) nodes_[from].member.step(FeedReady{piece->serving});
  } else if (auto* end = std::get_if<End>(&message.content)) {
    EndFeedOf(end->serving, end->why);
  }
}

// ---- Time

void PeerNet::SetTime(Nanos now) {
  now_ = now;
  transfers_.SetTime(now);
  for (uint32_t member = 0; member < nodes_.size(); ++member) {
    std::vector<uint64_t> late;
    for (const auto& [call, open] : nodes_[member].calls) {
      if (open.deadline <= now) late.push_back(call);
    }
    for (const uint64_t call : late) FailCall(member, call, "no answer in time");
  }
}

Nanos PeerNet::NextTime() const {
  Nanos next = transfers_.NextTime().value_or(std::numeric_limits<Nanos>::max());
  for (const Node& node : nodes_) {
    for (const auto& [call, open] : node.calls) next = std::min(next, open.deadline);
  }
  for (const Message& message : messages_) {
    if (message.due > now_) next = std::min(next, message.due);
  }
  return next;
}

}  // namespace pando::testing
