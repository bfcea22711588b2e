#include "transfer/process/process_link.h"

#include <utility>

namespace pando::transfer {

ProcessLink::ProcessLink(v1::TransferOpen open) : open_(std::move(open)) {}

void ProcessLink::Put(const v1::TransferCommand& command, int fd) {
  if (!socket_) return;
  socket_->Put(command, fd);
  socket_->Send();  // what fails here, Move finds
}

// ---- The engine's calls

void ProcessLink::AddMemory(std::span<std::byte> extent, int fd) {
  v1::TransferCommand command;
  command.set_add_extent(static_cast<uint32_t>(extents_.size()));
  extents_.Add(extent);
  extent_fds_.push_back(fd);
  Put(command, fd);
}

void ProcessLink::Start(const Offer& offer) {
  OpenOffer& open = offers_[offer.grant];
  Encode(offer, extents_, open.command.mutable_offer());
  Put(open.command);
}

void ProcessLink::Revoke(const GrantId& grant, Nanos now) {
  if (life_ == Life::kNone) {
    offers_.erase(grant);
    events_.emplace_back(GrantEnded{grant, 0});
    return;
  }
  offers_.at(grant).revoked = now;
  ++revoked_;
  v1::TransferCommand command;
  Encode(grant, command.mutable_revoke());
  Put(command);
}

void ProcessLink::Start(Pull pull) {
  ++ours_.pulls;
  if (life_ == Life::kRunning) {
    v1::TransferCommand command;
    Encode(pull, extents_, command.mutable_pull());
    Put(command);
  }
  const uint64_t id = pull.id;
  OpenPull open{std::move(pull.pages), {}, 0, pull.deadline};
  open.told.resize(open.pages.size());
  if (life_ == Life::kRunning) {
    pulls_.emplace(id, std::move(open));
  } else {
    EndByLoss(id, open);
  }
}

void ProcessLink::Cancel(uint64_t pull) {
  v1::TransferCommand command;
  command.set_cancel(pull);
  Put(command);
}

// ---- The process's life

void ProcessLink::Started(UniqueFd socket, Nanos now) {
  life_ = Life::kRunning;
  socket_.emplace(std::move(socket));
  opened_.reset();
  heard_ = now;
  v1::TransferCommand command;
  *command.mutable_open() = open_;
  Put(command);
  for (uint32_t i = 0; i < extent_fds_.size(); ++i) {
    command.set_add_extent(i);
    Put(command, extent_fds_[i]);
  }
  for (const auto& [grant, offer] : offers_) Put(offer.command);
}

bool ProcessLink::Move(Nanos now) {
  const bool sent = socket_->Send();
  const bool there = socket_->Receive() && sent;
  for (const MessageSocket::Message& message : socket_->Take()) {
    v1::TransferReport report;
    if (!report.ParseFromString(message.bytes) || !Read(report)) return false;
    heard_ = now;
  }
  return there;
}

bool ProcessLink::Read(const v1::TransferReport& report) {
  if (report.has_opened()) {
    const v1::TransferOpened& opened = report.opened();
    if (opened.error().empty()) {
      if (address_.empty()) address_ = opened.address();
      open_.set_listen(address_);  // the next one's too
      opened_ = absl::OkStatus();
    } else {
      opened_ = opened.invalid() ? absl::InvalidArgumentError(opened.error())
                                 : absl::UnavailableError(opened.error());
    }
  }
  Decode(report, &now_);
  for (const v1::TransferEvent& message : report.events()) {
    std::optional<TransferEvent> event = Decode(message);
    if (!event) return false;
    if (auto* const some = std::get_if<PullPages>(&*event)) {
      if (!Read(std::move(*some))) return false;
      continue;
    }
    if (const auto* const end = std::get_if<PullEnded>(&*event)) {
      if (pulls_.erase(end->pull) == 0) return false;
    } else {
      const auto it = offers_.find(std::get<GrantEnded>(*event).grant);
      if (it == offers_.end() || !it->second.revoked) return false;
      offers_.erase(it);
      --revoked_;
    }
    events_.push_back(*std::move(event));
  }
  return true;
}

bool ProcessLink::Read(PullPages some) {
  const auto it = pulls_.find(some.pull);
  if (it == pulls_.end()) return false;
  OpenPull& pull = it->second;
  for (const PullPages::Page& page : some.pages) {
    if (page.position >= pull.pages.size() || pull.told[page.position]) return false;
    pull.told[page.position] = true;
    if (page.outcome == PageOutcome::kArrived) {
      const uint64_t bytes = pull.pages[page.position].to.size();
      ++ours_.pages_pulled;
      ours_.bytes_pulled += bytes;
      pull.bytes += bytes;
    } else {
      ++(page.outcome == PageOutcome::kBad ? ours_.pages_bad : ours_.pages_failed);
    }
  }
  events_.emplace_back(std::move(some));
  return true;
}

void ProcessLink::Lost() {
  life_ = Life::kEnding;
  socket_.reset();
}

void ProcessLink::Reaped() {
  life_ = Life::kNone;
  for (const auto& [id, pull] : std::exchange(pulls_, {})) EndByLoss(id, pull);
  for (auto it = offers_.begin(); it != offers_.end();) {
    const auto offer = it++;
    if (!offer->second.revoked) continue;
    events_.emplace_back(GrantEnded{offer->first, 0});
    offers_.erase(offer);
  }
  revoked_ = 0;
  now_.connections_closed = now_.connections;
  before_ = Sum(before_, std::exchange(now_, {}));
  ++ours_.restarts;
}

void ProcessLink::EndByLoss(uint64_t id, const OpenPull& pull) {
  PullPages failed{id, {}};
  for (uint32_t i = 0; i < pull.pages.size(); ++i) {
    if (!pull.told[i]) failed.pages.push_back({i, PageOutcome::kFailed});
  }
  ours_.pages_failed += failed.pages.size();
  if (!failed.pages.empty()) events_.emplace_back(std::move(failed));
  events_.emplace_back(
      PullEnded{.pull = id, .status = PullStatus::kTransferLost, .bytes = pull.bytes});
}

bool ProcessLink::Stuck(Nanos now) const {
  const Nanos patience = 2 * open_.stall_timeout_ns();
  if (now - heard_ < patience) return false;
  for (const auto& [id, pull] : pulls_) {
    if (now - pull.deadline > patience) return true;
  }
  for (const auto& [grant, offer] : offers_) {
    if (offer.revoked && now - *offer.revoked > 2 * patience) return true;
  }
  return false;
}

TransferCounters ProcessLink::counters() const {
  TransferCounters all = Sum(before_, now_);
  all.pulls = ours_.pulls;
  all.pages_pulled = ours_.pages_pulled;
  all.bytes_pulled = ours_.bytes_pulled;
  all.pages_bad = ours_.pages_bad;
  all.pages_failed = ours_.pages_failed;
  all.restarts = ours_.restarts;
  return all;
}

}  // namespace pando::transfer
