// A UcxEngine among liars that know true pull and grant ids: what they say is right but for some
// flipped bits, missing bytes, repetitions and other orders. A failing seed is printed.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "tests/transfer/engine_pair.h"
#include "tests/transfer/raw_peer.h"
#include "transfer/memory/page_copy.h"
#include "transfer/ucx/ucx_engine.h"
#include "transfer/ucx/wire.h"

namespace pando {
namespace {

namespace wire = transfer::wire;
using Bytes = std::vector<std::byte>;

template <class T>
Bytes BytesOf(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

class WireFuzzTest : public testing::Test {
 protected:
  void SetUp() override {
    pair_ = MakeUcxPair({});
    for (Bytes& page : pages_) {
      page.resize(random_() % 3 == 0 ? 300'000 : 1 + random_() % 9000);
      for (std::byte& byte : page) byte = static_cast<std::byte>(random_());
    }
  }
  uint32_t Below(size_t n) { return static_cast<uint32_t>(random_() % n); }

  // One lie: a bit, a cut, or an addition.
  void Bend(Bytes* bytes) {
    switch (Below(4)) {
      case 0:
        bytes->resize(Below(bytes->size() + 1));
        break;
      case 1:
        bytes->resize(bytes->size() + 1 + Below(40));
        break;
      default:
        for (uint32_t flips = bytes->empty() ? 0 : 1 + Below(3); flips > 0; --flips) {
          (*bytes)[Below(bytes->size())] ^= static_cast<std::byte>(1u << Below(8));
        }
    }
  }
  void SendBent(RawMessage message) {
    const uint32_t lie = Below(8);
    if (lie == 0 || lie == 1) Bend(&message.header);
    if (lie == 2 || lie == 3) Bend(&message.payload);
    if (lie == 4) message.id = 1 + Below(3);
    if (lie == 5) message.rendezvous = !message.rendezvous;
    said_.push_back(message);
    liar_.Send(message);
    for (uint32_t again = Below(3); again > 0; --again) liar_.Send(said_[Below(said_.size())]);
  }
  bool Await(const std::function<bool()>& done) {
    return pair_->Await([&] {
      liar_.Progress();
      return done();
    });
  }

  std::mt19937 random_{testing::UnitTest::GetInstance()->random_seed() != 0
                           ? static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed())
                           : 11u};
  std::vector<Bytes> pages_{40};
  std::unique_ptr<EnginePair> pair_;
  RawPeer liar_;
  std::vector<RawMessage> said_;
};

// FAULTS G2, G3, G4: a requester that lies gets each page of its grant at most once, whole, and
// never one of another grant.
TEST_F(WireFuzzTest, ALyingRequester) {
  std::set<Bytes> granted(pages_.begin(), pages_.begin() + 30);
  Offer offer{{3, 4}, {}}, secret{{5, 6}, {}};
  for (size_t i = 0; i < pages_.size(); ++i) (i < 30 ? offer : secret).pages.push_back({pages_[i]});
  ASSERT_TRUE(pair_->owner->Start(std::move(offer)));
  ASSERT_TRUE(pair_->owner->Start(std::move(secret)));
  liar_.Connect(pair_->owner_address);
  for (int round = 0; round < 600; ++round) {
    wire::AskHeader header{.count = static_cast<uint16_t>(1 + Below(4)),
                           .pull = random_(),
                           .grant_high = 3,
                           .grant_low = 4};
    RawMessage ask{wire::kAskId, {}, {}, false};
    for (uint32_t i = 0; i < header.count; ++i) {
      const uint32_t index = Below(30);
      const Bytes entry =
          BytesOf(wire::AskEntry{i, index, static_cast<uint32_t>(pages_[index].size())});
      ask.payload.insert(ask.payload.end(), entry.begin(), entry.end());
    }
    ask.header = BytesOf(header);
    SendBent(std::move(ask));
    if (round % 50 == 0) {
      ASSERT_TRUE(Await([&] { return liar_.sending() < 50; })) << round;
    }
  }
  ASSERT_TRUE(Await([&] { return liar_.sending() == 0; }));
  // The last of all is honest, and answered after all others.
  Pull pull{1, pair_->owner_address, {5, 6}, pair_->Now() + 20'000'000'000, {}};
  std::vector<Bytes> to;
  for (uint32_t i = 0; i < 10; ++i) to.emplace_back(pages_[30 + i].size());
  for (uint32_t i = 0; i < 10; ++i) pull.pages.push_back({i, PageChecksum(pages_[30 + i]), to[i]});
  pair_->requester->Start(std::move(pull));
  ASSERT_TRUE(Await([&] { return pair_->requester_heard.ended.contains(1); }));
  EXPECT_EQ(pair_->requester_heard.Count(1, PageOutcome::kArrived), 10u)
      << "the liar took pages of a grant it does not know";
  pair_->owner->Revoke({3, 4});
  ASSERT_TRUE(Await([&] { return pair_->owner_heard.grants.size() == 1; }));
  uint32_t pages = 0, together = 0;
  for (const RawMessage& message : liar_.got) {
    if (message.id != wire::kPagesId) continue;
    const auto come = wire::ParsePages(message.header, message.payload.size());
    ASSERT_TRUE(come);
    together += come->pages.size() > 1;
    auto at = message.payload.begin();
    for (const wire::PageEntry& page : come->pages) {
      ++pages;
      EXPECT_EQ(granted.erase(Bytes(at, at + page.length)), 1u)
          << "not a granted page, or for the second time";
      at += page.length;
    }
  }
  EXPECT_GT(pages, 0u);
  EXPECT_GT(together, 0u) << "small pages of one ask go in one message";
  EXPECT_GT(pair_->owner->counters().messages_refused, 0u);
  EXPECT_GT(pair_->owner->counters().refused_pages, 0u);
}

// FAULTS D6: only whole messages are progress, so small pages go together as far as a slow link
// brings them in time; a requester takes all that an owner put in one.
TEST_F(WireFuzzTest, PagesThatGoTogetherAreBounded) {
  constexpr uint32_t kPages = wire::kPagesMax;
  const Bytes page(128u << 10, std::byte{7});
  Offer offer{{3, 4}, {}};
  for (uint32_t i = 0; i < kPages; ++i) offer.pages.push_back({page});
  ASSERT_TRUE(pair_->owner->Start(std::move(offer)));
  RawMessage ask{
      wire::kAskId,
      BytesOf(wire::AskHeader{.count = kPages, .pull = 1, .grant_high = 3, .grant_low = 4}),
      {},
      false};
  for (uint32_t i = 0; i < kPages; ++i) {
    wire::Append(wire::AskEntry{i, i, static_cast<uint32_t>(page.size())}, &ask.payload);
  }
  liar_.Connect(pair_->owner_address);
  liar_.Send(std::move(ask));
  size_t bytes = 0;
  ASSERT_TRUE(Await([&] {
    bytes = 0;
    for (const RawMessage& message : liar_.got) bytes += message.payload.size();
    return bytes == kPages * page.size();
  }));
  for (const RawMessage& message : liar_.got) {
    EXPECT_LE(message.payload.size(), wire::kMessageBytes);
  }
  EXPECT_EQ(liar_.got.size(), 4u);
  const wire::PagesHeader all{.count = kPages, .pull = 1};
  Bytes header = BytesOf(all);
  for (uint32_t i = 0; i < kPages; ++i) {
    wire::Append(wire::PageEntry{i, static_cast<uint32_t>(page.size())}, &header);
  }
  EXPECT_TRUE(wire::ParsePages(header, kPages * page.size()));
}

// FAULTS D4: who asks and reads no answer is cut off before its answers fill the memory.
TEST_F(WireFuzzTest, ARequesterThatReadsNothing) {
  constexpr uint32_t kPages = 24;
  pair_ = MakeUcxPair({.peer_pages_in_flight = kPages});
  const Bytes page(2 << 20);
  Offer offer{{3, 4}, {}};
  for (uint32_t i = 0; i < kPages; ++i) offer.pages.push_back({page});
  ASSERT_TRUE(pair_->owner->Start(std::move(offer)));
  const auto ask = [&](uint64_t grant, uint32_t index) {
    const wire::AskHeader header{.count = 1, .pull = 1, .grant_high = grant, .grant_low = 4};
    const wire::AskEntry entry{0, index, static_cast<uint32_t>(page.size())};
    liar_.Send({wire::kAskId, BytesOf(header), BytesOf(entry), false});
  };
  liar_.Connect(pair_->owner_address);
  ask(9, 0);
  ASSERT_TRUE(Await([&] { return liar_.got.size() == 1; }));
  for (uint32_t i = 0; i < kPages; ++i) ask(3, i);
  for (uint32_t i = 0; i < 10 * kPages; ++i) ask(9, i);
  EXPECT_TRUE(pair_->Await([&] { return pair_->owner->counters().connections_unread == 1; }));
  pair_->owner->Revoke({3, 4});
  EXPECT_TRUE(pair_->Await([&] { return pair_->owner_heard.grants.size() == 1; }));
}

// FAULTS D4: more callers than allowed are refused, and make room when they have gone.
TEST_F(WireFuzzTest, TooManyCallers) {
  pair_ = MakeUcxPair({.connections = 2});
  std::vector<std::unique_ptr<RawPeer>> callers;
  const auto counters = [&] { return pair_->owner->counters(); };
  const auto await = [&](const std::function<bool()>& done) {
    return pair_->Await([&] {
      for (const auto& caller : callers) caller->Progress();
      return done();
    });
  };
  for (uint32_t i = 0; i < 4; ++i) {
    callers.push_back(std::make_unique<RawPeer>());
    callers.back()->Connect(pair_->owner_address);
    ASSERT_TRUE(await([&] {
      return counters().connections + counters().connections_refused == i + 1;
    })) << i;
  }
  EXPECT_EQ(counters().connections_refused, 2u);
  callers.clear();
  ASSERT_TRUE(await([&] { return counters().connections_closed == 2; }));
  callers.push_back(std::make_unique<RawPeer>());
  callers.back()->Connect(pair_->owner_address);
  EXPECT_TRUE(await([&] { return counters().connections == 3; }));
}

// FAULTS G2, G4, B2: an owner that lies makes pages bad or failed, and never wrong; nothing beside
// them is written, and nothing after their pull's end.
TEST_F(WireFuzzTest, ALyingOwner) {
  constexpr size_t kSlot = 400'000;
  Bytes memory(10 * kSlot), expected(memory.size());
  uint32_t arrived = 0;
  for (uint64_t id = 1; id <= 60; ++id) {
    SCOPED_TRACE(id);
    std::fill(memory.begin(), memory.end(), std::byte{0x5a});
    Pull pull{id, liar_.address(), {id, 0}, pair_->Now() + 20'000'000'000, {}};
    std::vector<uint32_t> from;
    for (uint32_t i = 0; i < 10; ++i) {
      from.push_back(Below(pages_.size()));
      const Bytes& page = pages_[from[i]];
      pull.pages.push_back(
          {i, PageChecksum(page), std::span(memory).subspan(i * kSlot, page.size())});
    }
    pair_->requester->Start(std::move(pull));
    ASSERT_TRUE(Await([&] { return !liar_.got.empty(); }));
    for (const RawMessage& message : std::exchange(liar_.got, {})) {
      const auto ask = wire::ParseAsk(message.header, message.payload);
      ASSERT_TRUE(ask);
      RawMessage end{
          wire::kRefusalId,
          BytesOf(wire::RefusalHeader{
              .reason = 1, .count = static_cast<uint32_t>(ask->pages.size()), .pull = ask->wire}),
          {},
          false};
      for (size_t next = 0; next < ask->pages.size();) {
        const size_t count = std::min<size_t>(1 + Below(3), ask->pages.size() - next);
        RawMessage pages{
            wire::kPagesId,
            BytesOf(wire::PagesHeader{.count = static_cast<uint16_t>(count), .pull = ask->wire}),
            {},
            Below(2) == 0};
        for (const size_t last = next + count; next < last; ++next) {
          const uint32_t position = ask->pages[next].position;
          const Bytes& page = pages_[from[position]];
          wire::Append(wire::PageEntry{position, static_cast<uint32_t>(page.size())},
                       &pages.header);
          pages.payload.insert(pages.payload.end(), page.begin(), page.end());
          wire::Append(position, &end.payload);
        }
        SendBent(std::move(pages));
      }
      liar_.Send(end);  // of all that did not come otherwise: the pull ends
    }
    ASSERT_TRUE(Await([&] { return pair_->requester_heard.ended.contains(id); }));
    std::fill(expected.begin(), expected.end(), std::byte{0x5a});
    for (const auto& [position, outcome] : pair_->requester_heard.pages[id]) {
      const Bytes& page = pages_[from[position]];
      const auto* const is = &memory[position * kSlot];
      if (outcome == PageOutcome::kArrived) {
        ++arrived;
        ASSERT_EQ(std::memcmp(is, page.data(), page.size()), 0);
      }
      std::copy_n(is, page.size(), &expected[position * kSlot]);
    }
    ASSERT_EQ(pair_->requester_heard.pages[id].size(), 10u);
    ASSERT_TRUE(memory == expected) << "written beside its pages";
    if (said_.size() > 200) said_.erase(said_.begin(), said_.begin() + 100);
  }
  EXPECT_GT(arrived, 0u);
  EXPECT_GT(pair_->requester->counters().messages_refused, 0u);
  EXPECT_EQ(pair_->requester->counters().connections, 1u) << "lies do not end a connection";
  // Everything once more, into memory that belongs to no pull any more.
  std::fill(memory.begin(), memory.end(), std::byte{0x11});
  for (const RawMessage& message : said_) liar_.Send(message);
  ASSERT_TRUE(Await([&] { return liar_.sending() == 0; }));
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                          [](std::byte is) { return is == std::byte{0x11}; }));
}

}  // namespace
}  // namespace pando
