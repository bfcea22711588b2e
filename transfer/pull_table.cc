#include "transfer/pull_table.h"

#include <algorithm>
#include <utility>

#include "radix/base/check.h"

namespace pando::transfer {

void PullTable::Start(Pull pull, uint64_t wire, uint64_t connection, bool warm) {
  const auto [it, fresh] = pulls_.try_emplace(wire);
  PANDO_CHECK(fresh && by_caller_.try_emplace(pull.id, wire).second)
      << "a pull's id is used twice: " << pull.id;
  State& state = it->second;
  state.pull = std::move(pull);
  state.connection = connection;
  state.warm = warm;
  state.pages.resize(state.pull.pages.size(), PageState::kWaiting);
  deadlines_.emplace(state.pull.deadline, wire);
  Peer& peer = peers_[connection];
  peer.pulls.push_back(wire);
  ++out_->counters.pulls;
  for (uint32_t i = 0; i < state.pages.size(); ++i) {
    if (state.pull.pages[i].to.size() <= kPageBytesMax) continue;
    Fail(state, PullStatus::kRefused);
    Over(wire, state, i, PageOutcome::kFailed);
  }
  if (state.pages.empty()) Dirty(wire, state);
}

std::optional<Ask> PullTable::AskNext(uint64_t connection, uint32_t pages_max, Nanos now) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return std::nullopt;
  Peer& peer = found->second;
  const uint32_t window = std::min(limits_.pages_in_flight, limits_.peer_pages_in_flight);
  for (const uint64_t wire : peer.pulls) {
    State& state = pulls_.at(wire);
    const uint32_t waiting = static_cast<uint32_t>(state.pages.size()) - state.next;
    if (state.ending || waiting == 0 || state.under_way >= window ||
        peer.under_way >= limits_.peer_pages_in_flight) {
      continue;
    }
    const uint32_t room =
        std::min({window - state.under_way, limits_.peer_pages_in_flight - peer.under_way, waiting,
                  pages_max});
    if (room < std::min({window / 4, waiting, pages_max})) continue;
    Ask ask{wire, state.pull.grant, {}};
    while (state.next < state.pages.size() && ask.pages.size() < room) {
      const uint32_t position = state.next++;
      if (state.pages[position] != PageState::kWaiting) continue;
      state.pages[position] = PageState::kAsked;
      const PullPage& page = state.pull.pages[position];
      ask.pages.push_back({position, page.index, static_cast<uint32_t>(page.to.size())});
    }
    if (ask.pages.empty()) continue;
    state.under_way += static_cast<uint32_t>(ask.pages.size());
    peer.under_way += static_cast<uint32_t>(ask.pages.size());
    if (state.first_ask == 0) state.first_ask = state.last_page = state.told = now;
    return ask;
  }
  return std::nullopt;
}

PullTable::State* PullTable::FindOf(uint64_t connection, uint64_t wire) {
  const auto it = pulls_.find(wire);
  return it == pulls_.end() || it->second.connection != connection ? nullptr : &it->second;
}

Landing PullTable::Receive(uint64_t connection, uint64_t wire, uint32_t position, uint64_t length) {
  State* const state = FindOf(connection, wire);
  if (state == nullptr || position >= state->pages.size() ||
      state->pages[position] != PageState::kAsked) {
    ++out_->counters.messages_refused;
    return {};
  }
  const PullPage& page = state->pull.pages[position];
  if (page.to.size() != length) {
    ++out_->counters.messages_refused;
    Fail(*state, PullStatus::kRefused);
    Over(wire, *state, position, PageOutcome::kFailed);
    return {.kind = Landing::Kind::kWrong, .to = {}, .checksum = 0};
  }
  state->pages[position] = PageState::kReceiving;
  return {.kind = Landing::Kind::kTake, .to = page.to, .checksum = page.checksum};
}

void PullTable::Received(uint64_t wire, uint32_t position, PageOutcome outcome, Nanos now) {
  State& state = pulls_.at(wire);
  PANDO_CHECK(state.pages[position] == PageState::kReceiving) << "received, and not receiving";
  state.last_page = now;
  if (outcome == PageOutcome::kFailed) Fail(state, PullStatus::kUnreachable);
  Over(wire, state, position, outcome);
}

bool PullTable::Refused(uint64_t connection, uint64_t wire, std::span<const uint32_t> positions) {
  State* const state = FindOf(connection, wire);
  bool all = state != nullptr;
  for (const uint32_t position : positions) {
    if (state == nullptr || position >= state->pages.size() ||
        state->pages[position] != PageState::kAsked) {
      all = false;
      continue;
    }
    Fail(*state, PullStatus::kRefused);
    Over(wire, *state, position, PageOutcome::kFailed);
  }
  if (!all) ++out_->counters.messages_refused;
  return all;
}

void PullTable::Fail(State& state, PullStatus status) {
  if (state.status == PullStatus::kOk) state.status = status;
}

void PullTable::Over(uint64_t wire, State& state, uint32_t position, PageOutcome outcome) {
  PageState& page = state.pages[position];
  PANDO_CHECK(page != PageState::kOver) << "a page has two outcomes";
  if (page != PageState::kWaiting) {
    --state.under_way;
    --peers_.at(state.connection).under_way;
  }
  page = PageState::kOver;
  ++state.over;
  state.fresh.push_back({position, outcome});
  TransferCounters& counters = out_->counters;
  if (outcome == PageOutcome::kArrived) {
    const uint64_t bytes = state.pull.pages[position].to.size();
    state.bytes += bytes;
    ++counters.pages_pulled;
    counters.bytes_pulled += bytes;
  } else {
    ++(outcome == PageOutcome::kBad ? counters.pages_bad : counters.pages_failed);
  }
  Dirty(wire, state);
}

void PullTable::Dirty(uint64_t wire, State& state) {
  if (!std::exchange(state.dirty, true)) dirty_.push_back(wire);
}

void PullTable::End(uint64_t wire, PullStatus status) {
  const auto it = pulls_.find(wire);
  if (it == pulls_.end() || it->second.ending) return;
  State& state = it->second;
  state.ending = true;
  if (state.over == state.pages.size()) return;  // its end is on its way
  Fail(state, status);
  deadlines_.erase({state.pull.deadline, wire});
  for (uint32_t i = 0; i < state.pages.size(); ++i) {
    if (state.pages[i] == PageState::kWaiting || state.pages[i] == PageState::kAsked) {
      Over(wire, state, i, PageOutcome::kFailed);
    }
  }
  Dirty(wire, state);
}

void PullTable::EndByCaller(uint64_t pull, PullStatus status) {
  const auto it = by_caller_.find(pull);
  if (it != by_caller_.end()) End(it->second, status);
}

void PullTable::EndConnection(uint64_t connection, PullStatus status) {
  const auto it = peers_.find(connection);
  if (it == peers_.end()) return;
  for (const uint64_t wire : it->second.pulls) End(wire, status);
}

void PullTable::EndAll(PullStatus status) {
  for (const auto& [connection, peer] : peers_) EndConnection(connection, status);
}

void PullTable::Expire(Nanos now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const uint64_t wire = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    End(wire, PullStatus::kDeadline);
  }
}

std::optional<Nanos> PullTable::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

uint32_t PullTable::UnderWay(uint64_t connection) const {
  const auto it = peers_.find(connection);
  return it == peers_.end() ? 0 : it->second.under_way;
}

std::optional<Nanos> PullTable::Flush(Nanos now) {
  std::optional<Nanos> next;
  for (const uint64_t wire : std::exchange(dirty_, {})) {
    State& state = pulls_.at(wire);
    const Nanos due = state.told + tell_every_;
    if (due > now && state.over < state.pages.size()) {
      next = next ? std::min(*next, due) : due;
      dirty_.push_back(wire);
      continue;
    }
    state.told = now;
    state.dirty = false;
    if (!state.fresh.empty()) {
      out_->events.emplace_back(PullPages{state.pull.id, std::exchange(state.fresh, {})});
    }
    if (state.over == state.pages.size()) Finish(wire, state);
  }
  return next;
}

void PullTable::Finish(uint64_t wire, State& state) {
  out_->events.emplace_back(PullEnded{state.pull.id, state.status, state.bytes,
                                      state.last_page - state.first_ask, state.warm});
  deadlines_.erase({state.pull.deadline, wire});
  by_caller_.erase(state.pull.id);
  const auto peer = peers_.find(state.connection);
  std::erase(peer->second.pulls, wire);
  if (peer->second.pulls.empty()) peers_.erase(peer);
  pulls_.erase(wire);
}

}  // namespace pando::transfer
