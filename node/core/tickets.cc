#include "node/core/tickets.h"

#include <algorithm>

#include "node/core/problem.h"
#include "radix/base/check.h"

namespace pando {

// ---- Computations

void Tickets::Compute(const RequestRef& request, uint32_t to, std::vector<uint64_t> keys,
                      Nanos deadline) {
  StopComputing(request);
  std::erase_if(keys, [&](uint64_t key) {
    return makers_.size() >= limits::kBlocksComputing ||
           !makers_.emplace(key, request.replica).second;
  });
  if (keys.empty()) return;
  feeds_->PrefillBegan(keys);
  computation_deadlines_.emplace(deadline, KeyOf(request));
  computations_.emplace(KeyOf(request), Computation{request, to, std::move(keys), deadline});
}

std::optional<ReplicaNumber> Tickets::MakerOf(uint64_t key, ReplicaNumber except) const {
  const auto it = makers_.find(key);
  if (it == makers_.end() || it->second == except) return std::nullopt;
  return it->second;
}

void Tickets::StoreEnded(const RequestRef& request, uint32_t to, bool whole) {
  const auto it = computations_.find(KeyOf(request));
  if (it != computations_.end() && (!whole || to >= it->second.to)) {
    End(it);
  } else {
    Moved(request.replica);  // who waited for these blocks alone need not wait for the rest
  }
}

void Tickets::StopComputing(const RequestRef& request) {
  const auto it = computations_.find(KeyOf(request));
  if (it != computations_.end()) End(it);
}

void Tickets::End(Computations::iterator it) {
  const Computation& computation = it->second;
  const ReplicaNumber maker = computation.request.replica;
  for (const uint64_t key : computation.keys) makers_.erase(key);
  feeds_->PrefillEnded(computation.keys);
  computation_deadlines_.erase({computation.deadline, it->first});
  computations_.erase(it);
  Moved(maker);
}

// ---- Tickets

uint64_t Tickets::Issue(const Ticket& ticket) {
  const uint64_t id = next_++;
  by_request_[KeyOf(ticket.request)] = id;
  times_.emplace(DueAt(ticket), id);
  tickets_.emplace(id, ticket);
  return id;
}

Tickets::Ticket* Tickets::Find(ReplicaNumber replica, uint64_t id) {
  const auto it = tickets_.find(id);
  return it == tickets_.end() || it->second.request.replica != replica ? nullptr : &it->second;
}

Nanos Tickets::DueAt(const Ticket& ticket) const {
  return ticket.wait ? std::min(ticket.wait->until, ticket.deadline) : ticket.deadline;
}

void Tickets::SetWait(uint64_t id, const Wait& wait) {
  Ticket& ticket = tickets_.at(id);
  PANDO_CHECK(!ticket.wait) << "ticket " << id << " is awaited twice";
  times_.erase({DueAt(ticket), id});
  ticket.wait = wait;
  times_.emplace(DueAt(ticket), id);
  waiting_.emplace(ticket.maker, id);
  due_.insert(id);  // what it waits for may have come already
}

void Tickets::SetMaker(uint64_t id, ReplicaNumber maker, uint32_t from,
                       std::optional<uint32_t> to) {
  Ticket& ticket = tickets_.at(id);
  if (ticket.wait) {
    waiting_.erase({ticket.maker, id});
    waiting_.emplace(maker, id);
  }
  ticket.maker = maker;
  ticket.maker_from = from;
  ticket.maker_to = to.value_or(0);
  ticket.fetches += to ? 1 : 0;
}

void Tickets::SetLease(uint64_t id, ClaimId lease, uint32_t blocks) {
  Ticket& ticket = tickets_.at(id);
  ticket.lease = lease;
  ticket.blocks = blocks;
}

void Tickets::EndWait(uint64_t id) {
  Ticket& ticket = tickets_.at(id);
  if (!ticket.wait) return;
  times_.erase({DueAt(ticket), id});
  waiting_.erase({ticket.maker, id});
  ticket.wait.reset();
  times_.emplace(DueAt(ticket), id);
}

void Tickets::Close(uint64_t id) {
  EndWait(id);
  const auto it = tickets_.find(id);
  times_.erase({DueAt(it->second), id});
  by_request_.erase(KeyOf(it->second.request));
  due_.erase(id);
  tickets_.erase(it);
}

std::vector<Tickets::Wait> Tickets::RequestOver(const RequestRef& request) {
  StopComputing(request);
  std::vector<Wait> owed;
  const auto it = by_request_.find(KeyOf(request));
  if (it == by_request_.end()) return owed;
  const uint64_t id = it->second;
  if (const auto& wait = tickets_.at(id).wait) owed.push_back(*wait);
  Close(id);
  return owed;
}

std::vector<Tickets::Wait> Tickets::ReplicaOver(ReplicaNumber replica) {
  std::vector<RequestRef> over;
  const RequestKey first{replica, 0};
  for (auto it = computations_.lower_bound(first);
       it != computations_.end() && it->first.first == replica; ++it) {
    over.push_back(it->second.request);
  }
  for (auto it = by_request_.lower_bound(first);
       it != by_request_.end() && it->first.first == replica; ++it) {
    over.push_back(tickets_.at(it->second).request);
  }
  std::vector<Wait> owed;
  for (const RequestRef& request : over) {
    const std::vector<Wait> waits = RequestOver(request);
    owed.insert(owed.end(), waits.begin(), waits.end());
  }
  Moved(replica);  // also those who wait for blocks that it was writing without a computation
  return owed;
}

void Tickets::Moved(ReplicaNumber maker) {
  for (auto it = waiting_.lower_bound({maker, 0}); it != waiting_.end() && it->first == maker;
       ++it) {
    due_.insert(it->second);
  }
}

void Tickets::AllDue() {
  for (const auto& [maker, id] : waiting_) due_.insert(id);
}

std::optional<uint64_t> Tickets::NextDue(Nanos now) {
  while (!computation_deadlines_.empty() && computation_deadlines_.begin()->first <= now) {
    End(computations_.find(computation_deadlines_.begin()->second));
  }
  if (!times_.empty() && times_.begin()->first <= now) due_.insert(times_.begin()->second);
  if (due_.empty()) return std::nullopt;
  const uint64_t id = *due_.begin();
  due_.erase(due_.begin());
  return id;
}

Nanos Tickets::next_deadline() const {
  Nanos next = INT64_MAX;
  if (!times_.empty()) next = times_.begin()->first;
  if (!computation_deadlines_.empty()) {
    next = std::min(next, computation_deadlines_.begin()->first);
  }
  return next;
}

std::string Tickets::SelfCheck() const {
  size_t keys = 0, waits = 0;
  for (const auto& [name, computation] : computations_) {
    keys += computation.keys.size();
    for (const uint64_t key : computation.keys) {
      const auto it = makers_.find(key);
      if (it == makers_.end() || it->second != name.first) return "tickets: a key lost its maker";
    }
  }
  if (keys != makers_.size()) return "tickets: a key that nobody computes";
  for (const auto& [id, ticket] : tickets_) {
    if (!times_.contains({DueAt(ticket), id})) return "tickets: a ticket without its time";
    const auto it = by_request_.find(KeyOf(ticket.request));
    if (it == by_request_.end() || it->second != id) return "tickets: a ticket without its request";
    if (!ticket.wait) continue;
    ++waits;
    if (!waiting_.contains({ticket.maker, id})) return "tickets: a wait without its maker";
  }
  if (times_.size() != tickets_.size() || by_request_.size() != tickets_.size() ||
      waiting_.size() != waits || computation_deadlines_.size() != computations_.size()) {
    return "tickets: an entry of none";
  }
  return "";
}

}  // namespace pando
