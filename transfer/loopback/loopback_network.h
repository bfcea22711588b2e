// A network in one process: engines by address, and the messages between them, which move only when
// told. Deterministic: the same calls give the same events.
//
//   LoopbackNetwork network({});
//   auto a = network.Add("a"), b = network.Add("b");
//   a->Start(Offer{...}); b->Start(Pull{.address = "a", ...});
//   while (network.Step()) {}          // one message, or half a page, a call
//   network.SetTime(now);              // deadlines and stalls
//   b->TakeEvents(&events);
//
// It behaves as TCP with UCX on top does: what is lost (dropped, or sent into a partition) is
// noticed by nobody but the stall timeout; a page is first accepted and a Step later written, so
// that a deadline or a closed connection can come in between; a page that is on its way is read
// from the owner's memory when it lands, and is being sent until then.
//
// Owner: one thread. The network outlives its engines.
#ifndef PANDO_TRANSFER_LOOPBACK_LOOPBACK_NETWORK_H_
#define PANDO_TRANSFER_LOOPBACK_LOOPBACK_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transfer/offer_table.h"
#include "transfer/pull_table.h"

namespace pando {

class LoopbackEngine;

struct LoopbackOptions {
  TransferLimits limits;
  // false: pages are neither copied nor verified (a simulation larger than its memory); what would
  // have been written stays as it is, and kArrived says only that the page was there to send.
  bool carry_bytes = true;
};

enum class LoopbackMessage : uint8_t { kAsk, kPage, kRefusal, kClosed };

struct LoopbackFate {
  bool drop = false;
  bool corrupt = false;  // one bit of a page
  Nanos delay = 0;
};

class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(LoopbackOptions options) : options_(options) {}

  // `notify` is called when events come to the engine's empty queue, inside Step, SetTime or a call
  // of the engine; it only notes that.
  std::unique_ptr<LoopbackEngine> Add(const std::string& address,
                                      std::function<void()> notify = nullptr);

  // Delivers the oldest message that may arrive now; false: none.
  bool Step();
  // Sets the time and ends what it ends. Never goes back.
  void SetTime(Nanos now);
  Nanos now() const { return now_; }
  // When something happens without a Step or a call: a delayed message, a deadline, a stall.
  std::optional<Nanos> NextTime() const;

  // Decides on each message as it is sent; none: delivered.
  void SetFate(
      std::function<LoopbackFate(const std::string& from, const std::string& to, LoopbackMessage)>
          fate) {
    fate_ = std::move(fate);
  }
  // While two addresses are partitioned nothing passes between them; what was sent waits.
  void Partition(const std::string& a, const std::string& b, bool parted);
  // Their connections end, as by a reset: both hear of it.
  void Break(const std::string& a, const std::string& b);

 private:
  friend class LoopbackEngine;

  struct Page {
    uint64_t wire = 0;
    uint32_t position = 0;
    GrantId grant;
    std::span<const std::byte> bytes;
    std::span<std::byte> to;  // accepted: where it goes
    uint64_t checksum = 0;
    bool accepted = false;
  };
  struct Refused {
    uint64_t wire = 0;
    std::vector<uint32_t> positions;
  };
  struct Closed {};
  struct Message {
    std::string from, to;
    uint64_t connection = 0;
    bool corrupt = false, lost = false;
    std::variant<transfer::Ask, Page, Refused, Closed> content;
  };
  using Queue = std::map<std::pair<Nanos, uint64_t>, Message>;  // by {due, sequence}

  void Send(Message message);
  Queue::iterator NextDue();
  // Takes what runs on a connection out of the network.
  void Forget(uint64_t connection);
  void Remove(const std::string& address);
  static LoopbackMessage KindOf(const Message& message);

  const LoopbackOptions options_;
  std::map<std::string, LoopbackEngine*> engines_;
  std::function<LoopbackFate(const std::string&, const std::string&, LoopbackMessage)> fate_;
  std::set<std::pair<std::string, std::string>> parted_;  // both orders
  Queue queue_;
  uint64_t sequence_ = 0, next_id_ = 0;
  Nanos now_ = 0;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_LOOPBACK_LOOPBACK_NETWORK_H_
