#include "transfer/loopback/loopback_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "radix/base/check.h"
#include "transfer/memory/page_copy.h"

namespace pando {
namespace {

constexpr uint32_t kPagesPerAsk = 64;

}  // namespace

using transfer::Ask;
using transfer::Landing;

LoopbackEngine::LoopbackEngine(LoopbackNetwork* network, std::string address,
                               std::function<void()> notify)
    : network_(network),
      address_(std::move(address)),
      notify_(std::move(notify)),
      admission_(network->options_.limits),
      pulls_(network->options_.limits, &out_) {}

LoopbackEngine::~LoopbackEngine() {
  told_ = true;  // nobody listens any more
  while (!connections_.empty()) Close(connections_.begin()->first, /*tell=*/true);
  network_->Remove(address_);
}

// ---- Calls

bool LoopbackEngine::Start(Offer offer) {
  if (!admission_.Admit(offer)) return false;
  offers_.Start(std::move(offer));
  return true;
}

void LoopbackEngine::Revoke(GrantId grant) {
  if (!admission_.MayRevoke(grant)) return;
  offers_.Revoke(grant);
  Flush();
}

void LoopbackEngine::Start(Pull pull) {
  if (admission_.Admit(pull)) {
    const uint64_t wire = ++network_->next_id_;
    const uint64_t connection = ConnectionTo(pull.address);
    pulls_.Start(std::move(pull), wire, connection, connections_.at(connection).heard);
    pulls_.Expire(network_->now());
    Pump(connection);
  }
  Flush();
}

void LoopbackEngine::Cancel(uint64_t pull) {
  if (admission_.MayCancel(pull)) pulls_.EndByCaller(pull, PullStatus::kCancelled);
  Flush();
}

void LoopbackEngine::TakeEvents(std::vector<TransferEvent>* events) {
  told_ = false;
  admission_.Take(&out_.events, events);
}

void LoopbackEngine::Flush() {
  pulls_.Flush(network_->now());
  const bool some = !out_.events.empty() || admission_.HasEvents();
  if (some && !std::exchange(told_, true) && notify_) notify_();
}

// ---- Requester

uint64_t LoopbackEngine::ConnectionTo(const std::string& peer) {
  const auto [it, fresh] = by_peer_.try_emplace(peer);
  if (fresh) {
    it->second = ++network_->next_id_;
    connections_[it->second] = {peer, true, false, network_->now(), {}};
    ++out_.counters.connections;
  }
  return it->second;
}

void LoopbackEngine::Pump(uint64_t id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  if (pulls_.UnderWay(id) == 0) it->second.progress = network_->now();
  while (std::optional<Ask> ask = pulls_.AskNext(id, kPagesPerAsk, network_->now())) {
    network_->Send({address_, it->second.peer, id, false, false, std::move(*ask)});
  }
}

bool LoopbackEngine::Accept(uint64_t id, LoopbackNetwork::Page* page) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return false;
  connection->second.heard = true;
  const Landing landing = pulls_.Receive(id, page->wire, page->position, page->bytes.size());
  if (landing.kind != Landing::Kind::kTake) return false;
  page->to = landing.to;
  page->checksum = landing.checksum;
  return true;
}

void LoopbackEngine::Land(uint64_t id, const LoopbackNetwork::Page& page, bool corrupt) {
  if (!page.accepted) return;
  PageOutcome outcome = PageOutcome::kArrived;
  if (network_->options_.carry_bytes) {
    std::memcpy(page.to.data(), page.bytes.data(), page.to.size());
    if (corrupt) page.to[page.to.size() / 2] ^= std::byte{1};
    if (PageChecksum(page.to) != page.checksum) outcome = PageOutcome::kBad;
  } else if (corrupt) {
    outcome = PageOutcome::kBad;
  }
  pulls_.Received(page.wire, page.position, outcome, network_->now());
  connections_.at(id).progress = network_->now();
}

// ---- Owner

void LoopbackEngine::OnAsk(const LoopbackNetwork::Message& message) {
  const Ask& ask = std::get<Ask>(message.content);
  Connection& connection = connections_.at(message.connection);
  if (connection.sending.empty()) connection.progress = network_->now();
  LoopbackNetwork::Refused refused{ask.wire, {}};
  for (const transfer::AskedPage& page : ask.pages) {
    if (connection.sending.size() >= network_->options_.limits.peer_pages_in_flight) {
      ++out_.counters.refused_pages;
      refused.positions.push_back(page.position);
      continue;
    }
    const auto taken = offers_.Take(ask.grant, page.index, page.length);
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&taken)) {
      connection.sending.push_back(ask.grant);
      network_->Send(
          {address_, message.from, message.connection, false, false,
           LoopbackNetwork::Page{ask.wire, page.position, ask.grant, *bytes, {}, 0, false}});
    } else {
      refused.positions.push_back(page.position);
    }
  }
  if (refused.positions.empty()) return;
  network_->Send({address_, message.from, message.connection, false, false, std::move(refused)});
}

void LoopbackEngine::OnSent(uint64_t id, const LoopbackNetwork::Page& page) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  auto& sending = it->second.sending;
  const auto one = std::find(sending.begin(), sending.end(), page.grant);
  if (one == sending.end()) return;
  sending.erase(one);
  it->second.progress = network_->now();
  offers_.Sent(page.grant, page.bytes.size(), true);
  Flush();
}

// ---- Connections

void LoopbackEngine::Deliver(LoopbackNetwork::Message& message) {
  const uint64_t id = message.connection;
  auto it = connections_.find(id);
  if (std::holds_alternative<LoopbackNetwork::Closed>(message.content)) {
    Close(id, /*tell=*/false);
    return;
  }
  if (it == connections_.end()) {
    if (!std::holds_alternative<Ask>(message.content)) return;
    it = connections_.try_emplace(id, Connection{message.from, false, false, network_->now(), {}})
             .first;
    ++out_.counters.connections;
  }
  if (std::holds_alternative<Ask>(message.content)) {
    OnAsk(message);
  } else if (const auto* page = std::get_if<LoopbackNetwork::Page>(&message.content)) {
    Land(id, *page, message.corrupt);
  } else {
    const auto& refused = std::get<LoopbackNetwork::Refused>(message.content);
    it->second.progress = network_->now();
    pulls_.Refused(id, refused.wire, refused.positions);
  }
  Pump(id);
  Flush();
}

void LoopbackEngine::Close(uint64_t id, bool tell) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  const Connection connection = std::move(it->second);
  connections_.erase(it);
  if (connection.ours) by_peer_.erase(connection.peer);
  ++out_.counters.connections_closed;
  network_->Forget(id);
  for (const GrantId& grant : connection.sending) offers_.Sent(grant, 0, false);
  pulls_.EndConnection(id, PullStatus::kUnreachable);
  if (tell) {
    network_->Send({address_, connection.peer, id, false, false, LoopbackNetwork::Closed{}});
  }
  Flush();
}

void LoopbackEngine::CloseAllTo(const std::string& peer) {
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection.peer == peer) ids.push_back(id);
  }
  for (const uint64_t id : ids) Close(id, /*tell=*/true);
}

bool LoopbackEngine::Busy(uint64_t id, const Connection& connection) const {
  return !connection.sending.empty() || pulls_.UnderWay(id) > 0;
}

void LoopbackEngine::OnTime() {
  pulls_.Expire(network_->now());
  std::vector<uint64_t> stalled;
  for (const auto& [id, connection] : connections_) {
    if (Busy(id, connection) &&
        network_->now() - connection.progress >= network_->options_.limits.stall_timeout) {
      stalled.push_back(id);
    }
  }
  for (const uint64_t id : stalled) {
    ++out_.counters.connections_stalled;
    Close(id, /*tell=*/true);
  }
  Flush();
}

std::optional<Nanos> LoopbackEngine::NextTime() const {
  std::optional<Nanos> next = pulls_.NextDeadline();
  for (const auto& [id, connection] : connections_) {
    if (!Busy(id, connection)) continue;
    const Nanos stall = connection.progress + network_->options_.limits.stall_timeout;
    next = next ? std::min(*next, stall) : stall;
  }
  return next;
}

}  // namespace pando
