#include "transfer/process/message_codec.h"

#include <array>
#include <utility>

#include "radix/base/check.h"

namespace pando::transfer {
namespace {

constexpr std::array kCounters{
    &TransferCounters::pulls,
    &TransferCounters::pages_pulled,
    &TransferCounters::bytes_pulled,
    &TransferCounters::pages_bad,
    &TransferCounters::pages_failed,
    &TransferCounters::pages_sent,
    &TransferCounters::bytes_sent,
    &TransferCounters::refused_grants,
    &TransferCounters::refused_pages,
    &TransferCounters::messages_refused,
    &TransferCounters::connections,
    &TransferCounters::connections_closed,
    &TransferCounters::connections_stalled,
    &TransferCounters::connections_unread,
    &TransferCounters::connections_refused,
    &TransferCounters::offers_refused,
    &TransferCounters::pulls_refused,
    &TransferCounters::registrations_failed,
    &TransferCounters::restarts,
};
static_assert(kCounters.size() * sizeof(uint64_t) == sizeof(TransferCounters), "one is missing");

void Append(std::span<const std::byte> page, const ExtentMap& extents, v1::TransferPages* out) {
  const std::optional<PagePlace> place = extents.PlaceOf(page);
  PANDO_CHECK(place.has_value()) << "a page of " << page.size() << " bytes outside of all extents";
  out->add_extent(place->extent);
  out->add_offset(place->offset);
  out->add_bytes(place->bytes);
}

std::optional<std::vector<std::span<std::byte>>> PagesOf(const v1::TransferPages& pages,
                                                         const ExtentMap& extents) {
  if (pages.offset_size() != pages.extent_size() || pages.bytes_size() != pages.extent_size()) {
    return std::nullopt;
  }
  std::vector<std::span<std::byte>> out;
  out.reserve(static_cast<size_t>(pages.extent_size()));
  for (int i = 0; i < pages.extent_size(); ++i) {
    const auto page = extents.At({pages.extent(i), pages.offset(i), pages.bytes(i)});
    if (!page) return std::nullopt;
    out.push_back(*page);
  }
  return out;
}

}  // namespace

v1::TransferOpen Encode(const TransferLimits& limits) {
  v1::TransferOpen out;
  out.set_version(kProcessVersion);
  out.set_pages_in_flight(limits.pages_in_flight);
  out.set_peer_pages_in_flight(limits.peer_pages_in_flight);
  out.set_pulls(limits.pulls);
  out.set_offers(limits.offers);
  out.set_connections(limits.connections);
  out.set_stall_timeout_ns(limits.stall_timeout);
  return out;
}

TransferLimits LimitsOf(const v1::TransferOpen& open) {
  return {.pages_in_flight = open.pages_in_flight(),
          .peer_pages_in_flight = open.peer_pages_in_flight(),
          .pulls = open.pulls(),
          .offers = open.offers(),
          .connections = open.connections(),
          .stall_timeout = open.stall_timeout_ns()};
}

void Encode(const GrantId& grant, v1::TransferGrant* out) {
  out->set_high(grant.high);
  out->set_low(grant.low);
}

GrantId Decode(const v1::TransferGrant& grant) {
  return {grant.high(), grant.low()};
}

void Encode(const Offer& offer, const ExtentMap& extents, v1::TransferOffer* out) {
  Encode(offer.grant, out->mutable_grant());
  for (const OfferedPage& page : offer.pages) Append(page.bytes, extents, out->mutable_pages());
}

std::optional<Offer> Decode(const v1::TransferOffer& offer, const ExtentMap& extents) {
  const auto pages = PagesOf(offer.pages(), extents);
  if (!pages) return std::nullopt;
  Offer out{Decode(offer.grant()), {}};
  out.pages.reserve(pages->size());
  for (const std::span<std::byte> page : *pages) out.pages.push_back({page});
  return out;
}

void Encode(const Pull& pull, const ExtentMap& extents, v1::TransferPull* out) {
  out->set_id(pull.id);
  out->set_address(pull.address);
  Encode(pull.grant, out->mutable_grant());
  out->set_deadline_ns(pull.deadline);
  for (const PullPage& page : pull.pages) {
    out->add_index(page.index);
    out->add_checksum(page.checksum);
    Append(page.to, extents, out->mutable_pages());
  }
}

std::optional<Pull> Decode(const v1::TransferPull& pull, const ExtentMap& extents) {
  const auto pages = PagesOf(pull.pages(), extents);
  if (!pages || pull.index_size() != pull.pages().extent_size() ||
      pull.checksum_size() != pull.index_size()) {
    return std::nullopt;
  }
  Pull out{pull.id(), pull.address(), Decode(pull.grant()), pull.deadline_ns(), {}};
  out.pages.reserve(pages->size());
  for (int i = 0; i < pull.index_size(); ++i) {
    out.pages.push_back({pull.index(i), pull.checksum(i), (*pages)[static_cast<size_t>(i)]});
  }
  return out;
}

void Encode(const TransferEvent& event, v1::TransferEvent* out) {
  if (const auto* some = std::get_if<PullPages>(&event)) {
    v1::TransferPullPages* const pages = out->mutable_pages();
    pages->set_pull(some->pull);
    for (const PullPages::Page& page : some->pages) {
      pages->add_position(page.position);
      pages->mutable_outcome()->push_back(static_cast<char>(page.outcome));
    }
  } else if (const auto* end = std::get_if<PullEnded>(&event)) {
    v1::TransferPullEnded* const ended = out->mutable_pull_ended();
    ended->set_pull(end->pull);
    ended->set_status(static_cast<uint32_t>(end->status));
    ended->set_bytes(end->bytes);
    ended->set_took_ns(end->took);
    ended->set_warm(end->warm);
  } else {
    const auto& grant = std::get<GrantEnded>(event);
    Encode(grant.grant, out->mutable_grant_ended()->mutable_grant());
    out->mutable_grant_ended()->set_pages_sent(grant.pages_sent);
  }
}

std::optional<TransferEvent> Decode(const v1::TransferEvent& event) {
  if (event.has_pages()) {
    const v1::TransferPullPages& some = event.pages();
    if (some.outcome().size() != static_cast<size_t>(some.position_size())) return std::nullopt;
    PullPages out{some.pull(), {}};
    out.pages.reserve(some.outcome().size());
    for (int i = 0; i < some.position_size(); ++i) {
      const auto outcome = static_cast<PageOutcome>(some.outcome()[static_cast<size_t>(i)]);
      if (outcome > PageOutcome::kFailed) return std::nullopt;
      out.pages.push_back({some.position(i), outcome});
    }
    return out;
  }
  if (event.has_pull_ended()) {
    const v1::TransferPullEnded& end = event.pull_ended();
    if (end.status() > static_cast<uint32_t>(PullStatus::kOverloaded)) return std::nullopt;
    return PullEnded{end.pull(), static_cast<PullStatus>(end.status()), end.bytes(), end.took_ns(),
                     end.warm()};
  }
  if (!event.has_grant_ended()) return std::nullopt;
  return GrantEnded{Decode(event.grant_ended().grant()), event.grant_ended().pages_sent()};
}

void Encode(const TransferCounters& counters, v1::TransferReport* out) {
  for (const auto counter : kCounters) out->add_counters(counters.*counter);
}

bool Decode(const v1::TransferReport& report, TransferCounters* counters) {
  if (static_cast<size_t>(report.counters_size()) != kCounters.size()) return false;
  for (size_t i = 0; i < kCounters.size(); ++i) {
    counters->*kCounters[i] = report.counters(static_cast<int>(i));
  }
  return true;
}

TransferCounters Sum(TransferCounters a, const TransferCounters& b) {
  for (const auto counter : kCounters) a.*counter += b.*counter;
  return a;
}

}  // namespace pando::transfer
