#include "node/core/feeds.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "radix/base/check.h"

namespace pando {
namespace {

constexpr Nanos kFlushEvery = 100'000'000;
constexpr Nanos kTotalsEvery = 1'000'000'000;

}  // namespace

void Feeds::Start(BootId boot, bool shares, std::function<NodeTotals()> totals) {
  Advertiser::Options options;
  options.boot = boot;
  advertiser_ = std::make_unique<Advertiser>(options);
  totals_ = std::move(totals);
  shares_ = shares;
  if (shares_) context_->cache.SetListener(this);
}

// ---- What there is to tell

void Feeds::Appeared(std::optional<uint64_t> above, std::span<const uint64_t> keys) {
  try {
    advertiser_->Appeared(above, keys, Tier::kHost, context_->now);
  } catch (const std::bad_alloc&) {
    // Told by nobody: what lies below will have no parent, and not be told either.
  }
  changed_ = true;
}

void Feeds::Vanished(std::span<const uint64_t> keys) {
  advertiser_->Vanished(keys, Tier::kHost);
  changed_ = true;
}

void Feeds::PrefillBegan(std::span<const uint64_t> keys) {
  if (!shares_) return;
  advertiser_->PrefillBegan(keys);
  changed_ = true;
}

void Feeds::PrefillEnded(std::span<const uint64_t> keys) {
  if (!shares_) return;
  advertiser_->PrefillEnded(keys);
  changed_ = true;
}

void Feeds::Used(uint64_t key) {
  if (advertiser_ != nullptr) advertiser_->Used({&key, 1}, context_->now);
}

// ---- Streams

void Feeds::Open(uint64_t id, const FeedRequest& request) {
  PANDO_CHECK(advertiser_ != nullptr) << "a feed before the cluster was started";
  Stream stream;
  stream.guest = request.requester;
  stream.subscriber = request.boot == BootId()
                          ? advertiser_->Subscribe()
                          : advertiser_->Subscribe(request.boot, request.sequence);
  streams_.emplace(id, stream);
  changed_ = true;  // its first message is due
}

void Feeds::Ready(uint64_t id) {
  const auto it = streams_.find(id);
  if (it == streams_.end() || it->second.ready) return;
  it->second.ready = true;
  Send(id, &it->second);
}

void Feeds::Drop(uint64_t id) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  advertiser_->Unsubscribe(it->second.subscriber);
  streams_.erase(it);
}

void Feeds::EndAllOf(BootId guest, const std::string& why) {
  for (auto it = streams_.begin(); it != streams_.end();) {
    const auto next = std::next(it);
    if (it->second.guest == guest) {
      context_->outputs->emplace_back(EndFeed{it->first, PeerCode::kUnknown, why});
      Drop(it->first);
    }
    it = next;
  }
}

void Feeds::EndAll(const std::string& why) {
  while (!streams_.empty()) EndAllOf(streams_.begin()->second.guest, why);
}

uint64_t Feeds::streams(BootId guest) const {
  return static_cast<uint64_t>(
      std::count_if(streams_.begin(), streams_.end(),
                    [&](const auto& stream) { return stream.second.guest == guest; }));
}

void Feeds::Send(uint64_t id, Stream* stream) {
  std::shared_ptr<const FeedPiece> piece = advertiser_->Take(stream->subscriber);
  if (piece == nullptr) return;
  stream->ready = false;
  SendFeed send{id, std::move(piece), std::nullopt};
  if (std::exchange(stream->totals_due, false)) send.totals = totals_();
  context_->outputs->emplace_back(std::move(send));
}

void Feeds::Turn() {
  if (next_deadline() > context_->now) return;
  const bool totals =
      (account_changed_ || !changed_) && last_totals_ + kTotalsEvery <= context_->now;
  if (totals) {
    account_changed_ = false;
    last_totals_ = context_->now;
  }
  changed_ = false;
  last_flush_ = context_->now;
  advertiser_->Flush(context_->now, totals);
  for (auto& [id, stream] : streams_) {
    if (totals) stream.totals_due = true;
    if (stream.ready) Send(id, &stream);
  }
}

Nanos Feeds::next_deadline() const {
  if (streams_.empty()) return std::numeric_limits<Nanos>::max();
  const Nanos flush = last_flush_ + (changed_ ? kFlushEvery : Advertiser::Options().digest_every);
  return account_changed_ ? std::min(flush, last_totals_ + kTotalsEvery) : flush;
}

std::string Feeds::SelfCheck() const {
  return advertiser_ == nullptr ? "" : advertiser_->CheckInvariants();
}

}  // namespace pando
