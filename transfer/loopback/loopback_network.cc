#include "transfer/loopback/loopback_network.h"

#include <algorithm>

#include "radix/base/check.h"
#include "transfer/loopback/loopback_engine.h"

namespace pando {

std::unique_ptr<LoopbackEngine> LoopbackNetwork::Add(const std::string& address,
                                                     std::function<void()> notify) {
  std::unique_ptr<LoopbackEngine> engine(new LoopbackEngine(this, address, std::move(notify)));
  const bool fresh = engines_.emplace(address, engine.get()).second;
  PANDO_CHECK(fresh) << "two engines at " << address;
  return engine;
}

LoopbackMessage LoopbackNetwork::KindOf(const Message& message) {
  return static_cast<LoopbackMessage>(message.content.index());
}

void LoopbackNetwork::Send(Message message) {
  const LoopbackFate fate =
      fate_ ? fate_(message.from, message.to, KindOf(message)) : LoopbackFate{};
  if (fate.drop && std::holds_alternative<Closed>(message.content)) return;
  message.lost = fate.drop;
  message.corrupt = fate.corrupt;
  queue_.emplace(std::pair{now_ + fate.delay, ++sequence_}, std::move(message));
}

LoopbackNetwork::Queue::iterator LoopbackNetwork::NextDue() {
  for (auto it = queue_.begin(); it != queue_.end() && it->first.first <= now_; ++it) {
    const Message& message = it->second;
    if (!message.lost && !parted_.contains({message.from, message.to})) return it;
  }
  return queue_.end();
}

bool LoopbackNetwork::Step() {
  const auto it = NextDue();
  if (it == queue_.end()) return false;
  const auto to = engines_.find(it->second.to);
  if (to == engines_.end()) {
    // Nobody there: the sender hears so, as of a refused connection.
    const Message lost = std::move(it->second);
    queue_.erase(it);
    const auto from = engines_.find(lost.from);
    if (from != engines_.end()) from->second->Close(lost.connection, /*tell=*/false);
    return true;
  }
  auto* const page = std::get_if<Page>(&it->second.content);
  if (page != nullptr && !page->accepted && to->second->Accept(it->second.connection, page)) {
    page->accepted = true;
    return true;
  }
  Message message = std::move(it->second);
  queue_.erase(it);
  to->second->Deliver(message);
  if (const auto* sent = std::get_if<Page>(&message.content)) {
    const auto from = engines_.find(message.from);
    if (from != engines_.end()) from->second->OnSent(message.connection, *sent);
  }
  return true;
}

void LoopbackNetwork::SetTime(Nanos now) {
  PANDO_CHECK(now >= now_) << "time goes back from " << now_ << " to " << now;
  now_ = now;
  for (const auto& [address, engine] : engines_) engine->OnTime();
}

std::optional<Nanos> LoopbackNetwork::NextTime() const {
  std::optional<Nanos> next;
  const auto sooner = [&](Nanos time) { next = next ? std::min(*next, time) : time; };
  for (const auto& [due, message] : queue_) {
    if (due.first > now_ && !message.lost) sooner(due.first);
  }
  for (const auto& [address, engine] : engines_) {
    if (const std::optional<Nanos> time = engine->NextTime()) sooner(*time);
  }
  return next;
}

void LoopbackNetwork::Partition(const std::string& a, const std::string& b, bool parted) {
  for (const auto& pair : {std::pair{a, b}, std::pair{b, a}}) {
    if (parted) {
      parted_.insert(pair);
    } else {
      parted_.erase(pair);
    }
  }
}

void LoopbackNetwork::Break(const std::string& a, const std::string& b) {
  for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}}) {
    const auto engine = engines_.find(one);
    if (engine != engines_.end()) engine->second->CloseAllTo(other);
  }
}

void LoopbackNetwork::Forget(uint64_t connection) {
  for (auto it = queue_.begin(); it != queue_.end();) {
    const Message& message = it->second;
    if (message.connection != connection || std::holds_alternative<Closed>(message.content)) {
      ++it;
      continue;
    }
    // An accepted page was being written: its receive ends without it.
    const auto* page = std::get_if<Page>(&message.content);
    const auto to = engines_.find(message.to);
    if (page != nullptr && page->accepted && to != engines_.end()) {
      to->second->pulls_.Received(page->wire, page->position, PageOutcome::kFailed, now_);
      to->second->Flush();
    }
    it = queue_.erase(it);
  }
}

void LoopbackNetwork::Remove(const std::string& address) {
  engines_.erase(address);
}

}  // namespace pando
