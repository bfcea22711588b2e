// Feeds: what this node tells those who subscribed, and when.
//
//   cache ──Appeared, Vanished──► Advertiser ──Flush, at most ten times a second──► pieces
//   tickets ──PrefillBegan, Ended──►                                                  │
//                                        stream ◄── one at a time, the next at FeedReady
//
//  1. A stream has at most one message on its way. One that is slow gets a snapshot later (FAULTS
//     E5, D4); nothing waits for it and nothing is kept for it alone.
//  2. A quiet node tells its digest every few seconds, so a stream that is silent for long is dead.
//     The totals go with it, and once a second while requests are settled.
//  3. Without memory to tell of a block it is not told: peers ask for less, never for what is not.
//
// Until Start nothing is told and nothing costs. Owner thread only.
#ifndef PANDO_NODE_CORE_FEEDS_H_
#define PANDO_NODE_CORE_FEEDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "node/core/cluster/advertiser.h"
#include "node/core/context.h"
#include "node/core/peer_messages.h"

namespace pando {

class Feeds : public BlockListener {
 public:
  explicit Feeds(CoreContext* context) : context_(context) {}

  // Before the cache has blocks. `totals` is asked when they are to be told.
  // `shares`: it tells what it has and computes, and not its counters alone.
  void Start(BootId boot, bool shares, std::function<NodeTotals()> totals);

  void Appeared(std::optional<uint64_t> above, std::span<const uint64_t> keys) override;
  void Vanished(std::span<const uint64_t> keys) override;
  void PrefillBegan(std::span<const uint64_t> keys);
  void PrefillEnded(std::span<const uint64_t> keys);
  // A request used the chain that ends with this block.
  void Used(uint64_t key);
  // Requests were settled: peers hear of it within a second.
  void AccountChanged() { account_changed_ = true; }

  // The stream of a guest.
  void Open(uint64_t stream, const FeedRequest& request);
  void Ready(uint64_t stream);
  void Drop(uint64_t stream);
  // A guest that is over: its streams are ended. Or those of all guests.
  void EndAllOf(BootId guest, const std::string& why);
  void EndAll(const std::string& why);

  // Tells what is due.
  void Turn();
  Nanos next_deadline() const;

  uint64_t streams() const { return streams_.size(); }
  uint64_t streams(BootId guest) const;
  uint64_t told() const { return advertiser_ == nullptr ? 0 : advertiser_->counters().told; }
  std::string SelfCheck() const;

 private:
  struct Stream {
    BootId guest;
    SubscriberId subscriber;
    bool ready = true;
    bool totals_due = true;  // with the next message
  };

  void Send(uint64_t id, Stream* stream);

  CoreContext* context_;
  std::function<NodeTotals()> totals_;
  bool shares_ = false;
  std::unique_ptr<Advertiser> advertiser_;
  std::map<uint64_t, Stream> streams_;
  bool changed_ = false, account_changed_ = false;
  Nanos last_flush_ = 0, last_totals_ = 0;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_FEEDS_H_
