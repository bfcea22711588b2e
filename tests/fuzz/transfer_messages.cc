// What comes to a transfer engine: active messages into its tables, and the messages and frames
// between a node and its transfer process.
//
// input = {what: u8} + bytes
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/core/messages.h"
#include "radix/base/check.h"
#include "tests/fuzz/targets.h"
#include "transfer/offer_table.h"
#include "transfer/process/message_codec.h"
#include "transfer/process/message_socket.h"
#include "transfer/pull_table.h"
#include "transfer/ucx/wire.h"

namespace pando::fuzz {
namespace {

namespace wire = transfer::wire;

// ---- Active messages
//
// messages = {id - 1: u8, header bytes: u8, payload bytes: u8} + both; 3 is no message, but
// something that ends

constexpr uint32_t kPages = 6;
constexpr size_t kPageBytes = 16;
constexpr GrantId kGrant{1, 2};
constexpr uint64_t kWire = 3, kConnection = 4, kPull = 5;

class Tables {
 public:
  Tables() {
    Offer offer{kGrant, {}};
    Pull pull{kPull, "", kGrant, 1'000, {}};
    for (uint32_t i = 0; i < kPages; ++i) {
      offer.pages.push_back({std::span(memory_[i])});
      pull.pages.push_back({i, 0, std::span(memory_[kPages + i])});
    }
    offers_.Start(std::move(offer));
    pulls_.Start(std::move(pull), kWire, kConnection, true);
    pulls_.AskNext(kConnection, kPages - 1, 1);  // one is left that was not asked for
  }

  void Hear(unsigned id, wire::Raw header, wire::Raw payload) {
    if (id == wire::kAskId) HearAsk(header, payload);
    if (id == wire::kPagesId) HearPages(header, payload);
    if (id == wire::kRefusalId) HearRefusal(header, payload);
    if (id > wire::kRefusalId && !header.empty()) Happen(static_cast<uint8_t>(header[0]));
  }

  // Each page has had one outcome, and each table its end, once.
  void End() {
    pulls_.End(kWire, PullStatus::kCancelled);
    pulls_.Flush(3);
    offers_.Revoke(kGrant);
    std::map<uint32_t, int> outcomes;
    int pulls_ended = 0, grants_ended = 0;
    for (const TransferEvent& event : out_.events) {
      if (const auto* pages = std::get_if<PullPages>(&event)) {
        PANDO_CHECK(pulls_ended == 0) << "an outcome after its pull's end";
        for (const PullPages::Page& page : pages->pages) ++outcomes[page.position];
      }
      pulls_ended += std::holds_alternative<PullEnded>(event) ? 1 : 0;
      grants_ended += std::holds_alternative<GrantEnded>(event) ? 1 : 0;
    }
    PANDO_CHECK(pulls_ended == 1 && grants_ended == 1 && outcomes.size() == kPages)
        << pulls_ended << " ends of a pull, " << grants_ended << " of a grant";
    for (const auto& [position, times] : outcomes) {
      PANDO_CHECK(position < kPages && times == 1) << "page " << position << " has " << times;
    }
  }

 private:
  // What ends a pull beside its pages.
  void Happen(uint8_t what) {
    if (what % 6 == 0) pulls_.EndByCaller(kPull, PullStatus::kCancelled);
    if (what % 6 == 1) pulls_.EndConnection(kConnection, PullStatus::kUnreachable);
    if (what % 6 == 2) pulls_.EndAll(PullStatus::kUnreachable);
    if (what % 6 == 3) pulls_.Expire(1'000);
    if (what % 6 == 4) pulls_.AskNext(kConnection, kPages, 2);
    if (what % 6 == 5) offers_.Revoke(kGrant);
    pulls_.NextDeadline();
    pulls_.UnderWay(kConnection);
  }

  void HearAsk(wire::Raw header, wire::Raw payload) {
    const auto ask = wire::ParseAsk(header, payload);
    if (!ask) return;
    std::vector<std::byte> again, entries;
    wire::Append(wire::AskHeader{.count = static_cast<uint16_t>(ask->pages.size()),
                                 .pull = ask->wire,
                                 .grant_high = ask->grant.high,
                                 .grant_low = ask->grant.low},
                 &again);
    for (const transfer::AskedPage& page : ask->pages) {
      wire::Append(wire::AskEntry{page.position, page.index, page.length}, &entries);
      const auto taken = offers_.Take(ask->grant, page.index, page.length);
      if (const auto* bytes = std::get_if<std::span<const std::byte>>(&taken)) {
        PANDO_CHECK(ask->grant == kGrant && bytes->size() == page.length) << "a foreign page";
        PANDO_CHECK(++taken_[page.index] == 1) << "page " << page.index << " is sent twice";
        offers_.Sent(ask->grant, bytes->size(), true);
      }
    }
    Same(again, header);
    Same(entries, payload);
  }

  void HearPages(wire::Raw header, wire::Raw payload) {
    const auto pages = wire::ParsePages(header, payload.size());
    if (!pages) return;
    std::vector<std::byte> again;
    wire::Append(
        wire::PagesHeader{.count = static_cast<uint16_t>(pages->pages.size()), .pull = pages->pull},
        &again);
    size_t at = 0;
    for (const wire::PageEntry& page : pages->pages) {
      wire::Append(page, &again);
      const wire::Raw bytes = payload.subspan(at, page.length);
      at += page.length;
      const auto landing = pulls_.Receive(kConnection, pages->pull, page.position, page.length);
      if (landing.kind != transfer::Landing::Kind::kTake) continue;
      PANDO_CHECK(landing.to.size() == bytes.size()) << "a page of another length is taken";
      std::copy(bytes.begin(), bytes.end(), landing.to.begin());
      const bool good = bytes[0] == std::byte{0};
      pulls_.Received(pages->pull, page.position, good ? PageOutcome::kArrived : PageOutcome::kBad,
                      2);
    }
    Same(again, header);
  }

  void HearRefusal(wire::Raw header, wire::Raw payload) {
    const auto refused = wire::ParseRefusal(header, payload);
    if (!refused) return;
    pulls_.Refused(kConnection, refused->pull, refused->positions);
    std::vector<std::byte> again;
    for (const uint32_t position : refused->positions) wire::Append(position, &again);
    Same(again, payload);
  }

  static void Same(const std::vector<std::byte>& said, wire::Raw came) {
    PANDO_CHECK(std::equal(said.begin(), said.end(), came.begin(), came.end()))
        << "what was taken is said in another way again";
  }

  std::array<std::array<std::byte, kPageBytes>, 2 * kPages> memory_{};
  transfer::Outbox out_;
  transfer::OfferTable offers_{&out_};
  transfer::PullTable pulls_{TransferLimits{}, &out_};
  std::map<uint32_t, int> taken_;
};

void ActiveMessages(Input input) {
  Tables tables;
  constexpr size_t kLengths = 3;
  while (input.size() > kLengths) {
    const unsigned id = 1 + input[0] % 4;
    const Input rest = input.subspan(kLengths);
    const size_t header = std::min<size_t>(input[1], rest.size());
    const size_t payload = std::min<size_t>(input[2], rest.size() - header);
    tables.Hear(id, std::as_bytes(rest.first(header)),
                std::as_bytes(rest.subspan(header, payload)));
    input = rest.subspan(header + payload);
  }
  tables.End();
}

// ---- Between a node and its transfer process

class Extents {
 public:
  Extents() {
    for (std::array<std::byte, 256>& extent : memory_) map_.Add(extent);
  }
  const transfer::ExtentMap& map() const { return map_; }

 private:
  std::array<std::array<std::byte, 256>, 2> memory_{};
  transfer::ExtentMap map_;
};

// What is decoded can be encoded, and is the same again.
template <class Message>
void SameAgain(const Message& message, const transfer::ExtentMap& extents) {
  const auto value = transfer::Decode(message, extents);
  if (!value) return;
  Message said;
  transfer::Encode(*value, extents, &said);
  const auto again = transfer::Decode(said, extents);
  PANDO_CHECK(again && again->grant == value->grant && again->pages.size() == value->pages.size())
      << "what was taken cannot be said again";
}

std::array<UniqueFd, 2> SocketPair() {
  std::array<int, 2> ends{};
  PANDO_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0)
      << "no socket";
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// What is sent is what comes, with the descriptor that goes with it.
void Relay(const v1::TransferCommand& command) {
  auto [one, other] = SocketPair();
  transfer::MessageSocket from(std::move(one)), to(std::move(other));
  from.Put(command, command.has_add_extent() ? from.fd() : -1);
  PANDO_CHECK(from.Send() && !from.wants_write() && to.Receive()) << "a message does not go out";
  const auto came = to.Take();
  PANDO_CHECK(came.size() == 1 && came.front().bytes == command.SerializeAsString() &&
              came.front().fd.valid() == command.has_add_extent())
      << "another message comes than was sent";
}

void Command(const std::string& bytes) {
  v1::TransferCommand command;
  if (!command.ParseFromString(bytes)) return;
  Relay(command);
  const Extents extents;
  if (command.has_offer()) SameAgain(command.offer(), extents.map());
  if (command.has_pull()) SameAgain(command.pull(), extents.map());
  if (!command.has_open()) return;
  const TransferLimits limits = transfer::LimitsOf(command.open());
  const v1::TransferOpen again = transfer::Encode(limits);
  PANDO_CHECK(again.pulls() == limits.pulls && again.offers() == limits.offers)
      << "limits are said in another way again";
}

void Report(const std::string& bytes) {
  v1::TransferReport report;
  if (!report.ParseFromString(bytes)) return;
  for (const v1::TransferEvent& event : report.events()) {
    const auto value = transfer::Decode(event);
    if (!value) continue;
    v1::TransferEvent said;
    transfer::Encode(*value, &said);
    const auto again = transfer::Decode(said);
    PANDO_CHECK(again && again->index() == value->index()) << "an event cannot be told again";
  }
  TransferCounters counters;
  if (!transfer::Decode(report, &counters)) return;
  v1::TransferReport said;
  transfer::Encode(counters, &said);
  TransferCounters again;
  PANDO_CHECK(transfer::Decode(said, &again) && again == counters &&
              transfer::Sum(counters, {}) == counters)
      << "counters are told in another way again";
}

// The stream, and then its end.
void Stream(Input input) {
  auto [mine, other] = SocketPair();
  transfer::MessageSocket socket(std::move(other));
  size_t bytes = 0;
  if (!input.empty()) {
    PANDO_CHECK(::write(mine.get(), input.data(), input.size()) ==
                static_cast<ssize_t>(input.size()))
        << "the socket is full";
  }
  mine.reset();
  PANDO_CHECK(!socket.Receive()) << "the end of the stream was not seen";
  for (const transfer::MessageSocket::Message& message : socket.Take()) {
    bytes += sizeof(uint32_t) + message.bytes.size();
    PANDO_CHECK(!message.fd.valid()) << "a descriptor from nowhere";
  }
  PANDO_CHECK(bytes <= input.size()) << "more came out than in";
}

}  // namespace

void TransferMessages(Input input) {
  if (input.empty()) return;
  const uint8_t what = input[0] % 4;
  input = input.subspan(1);
  const std::string bytes(input.begin(), input.end());
  if (what == 0) ActiveMessages(input);
  if (what == 1) Command(bytes);
  if (what == 2) Report(bytes);
  if (what == 3) Stream(input);
}

}  // namespace pando::fuzz
