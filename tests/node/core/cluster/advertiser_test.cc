// Advertiser and FeedReader, one of each or few: what is told, when, and what a reader makes of it.
#include "node/core/cluster/advertiser.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "node/core/cluster/feed_reader.h"
#include "tests/sim/random.h"

namespace pando {
namespace {

using sim::Random;

constexpr Nanos kSecond = 1'000'000'000;

std::vector<uint64_t> Chain(uint64_t name, uint32_t length) {
  std::vector<uint64_t> keys(length);
  for (uint32_t i = 0; i < length; ++i) keys[i] = sim::Mix(name << 32, i);
  return keys;
}

// An advertiser, its one subscriber and that one's directory.
class AdvertiserTest : public testing::Test {
 protected:
  void Start(const Advertiser::Options& options) {
    advertiser_ = std::make_unique<Advertiser>(options);
    id_ = advertiser_->Subscribe();
  }
  // The pieces since the last call.
  std::vector<std::shared_ptr<const FeedPiece>> Take() {
    std::vector<std::shared_ptr<const FeedPiece>> pieces;
    while (auto piece = advertiser_->Take(id_)) pieces.push_back(std::move(piece));
    return pieces;
  }
  // Flushes and lets the reader have all.
  uint64_t Exchange(Nanos now) {
    advertiser_->Flush(now);
    EXPECT_EQ(advertiser_->CheckInvariants(), "");
    uint64_t keys = 0;
    for (const auto& piece : Take()) {
      EXPECT_EQ(reader_.Apply(*piece), FeedVerdict::kApplied);
      keys += piece->keys();
    }
    return keys;
  }

  Directory held_{1}, prefilling_{2};
  FeedReader reader_{{.peer = PeerId(1)}, &held_, &prefilling_};
  std::unique_ptr<Advertiser> advertiser_;
  SubscriberId id_;
};

TEST_F(AdvertiserTest, ASnapshotThenDeltas) {
  Start({.boot = BootId(7)});
  const std::vector<uint64_t> keys = Chain(1, 100);
  advertiser_->Appeared({}, std::span(keys).first(60), Tier::kHost, 0);
  EXPECT_EQ(Exchange(0), 60u);
  EXPECT_TRUE(reader_.complete());
  advertiser_->Appeared(keys[59], std::span(keys).subspan(60), Tier::kHost, 1);
  EXPECT_EQ(Exchange(1), 40u);
  EXPECT_EQ(held_.blocks(PeerId(1)), 100u);
  advertiser_->Vanished(std::span(keys).subspan(90), Tier::kHost);
  EXPECT_EQ(Exchange(2), 10u);
  std::vector<PeerDepth> found;
  held_.Lookup(keys, 0, &found);
  EXPECT_EQ(found, (std::vector<PeerDepth>{{PeerId(1), 90}}));
}

// FAULTS E5
TEST_F(AdvertiserTest, WhatCameAndWentCostsNothing) {
  Start({.boot = BootId(7)});
  const std::vector<uint64_t> keys = Chain(1, 50);
  advertiser_->Appeared({}, std::span(keys).first(10), Tier::kHost, 0);
  Exchange(0);
  advertiser_->Appeared(keys[9], std::span(keys).subspan(10), Tier::kHost, 0);
  advertiser_->Vanished(std::span(keys).subspan(5), Tier::kHost);
  advertiser_->Appeared(keys[4], std::span(keys).subspan(5, 5), Tier::kHost, 0);
  EXPECT_EQ(Exchange(1), 0u);  // not even what went and came back
  EXPECT_EQ(held_.blocks(PeerId(1)), 10u);
}

// FAULTS E2
TEST_F(AdvertiserTest, ABlockGoesWithItsLastTier) {
  Start({.boot = BootId(7)});
  const std::vector<uint64_t> keys = Chain(1, 10);
  advertiser_->Appeared({}, keys, Tier::kHost, 0);
  advertiser_->Appeared({}, keys, Tier::kDisk, 0);
  EXPECT_EQ(Exchange(0), 10u);
  advertiser_->Vanished(keys, Tier::kHost);
  EXPECT_EQ(Exchange(1), 0u);
  advertiser_->Vanished(std::span(keys).subspan(4), Tier::kDisk);
  EXPECT_EQ(Exchange(2), 6u);
  EXPECT_EQ(held_.blocks(PeerId(1)), 4u);
}

// FAULTS E3
TEST_F(AdvertiserTest, NothingHangsInTheAir) {
  Start({.boot = BootId(7)});
  const std::vector<uint64_t> keys = Chain(1, 10);
  advertiser_->Appeared(keys[3], std::span(keys).subspan(4), Tier::kHost, 0);
  EXPECT_EQ(Exchange(0), 0u);
  EXPECT_EQ(advertiser_->counters().without_parent, 6u);
  advertiser_->Appeared({}, keys, Tier::kHost, 0);
  EXPECT_EQ(Exchange(1), 10u);
  advertiser_->Vanished({&keys[2], 1}, Tier::kHost);  // and so all below
  EXPECT_EQ(Exchange(2), 8u);
  EXPECT_EQ(held_.blocks(PeerId(1)), 2u);
}

TEST_F(AdvertiserTest, HotChainsTakeTheBudget) {
  Start({.boot = BootId(7), .budget = Bytes(100 * 8)});
  std::vector<std::vector<uint64_t>> chains;
  for (uint32_t c = 0; c < 20; ++c) {
    chains.push_back(Chain(c, 20));
    advertiser_->Appeared({}, chains.back(), Tier::kHost, 0);
  }
  Exchange(0);
  EXPECT_EQ(held_.blocks(PeerId(1)), 100u);
  for (uint32_t c = 3; c < 8; ++c) {
    for (int use = 0; use < 8; ++use) advertiser_->Used(chains[c], kSecond);
  }
  Exchange(kSecond);
  EXPECT_EQ(held_.blocks(PeerId(1)), 100u);
  for (uint32_t c = 3; c < 8; ++c) EXPECT_TRUE(held_.Holds(PeerId(1), chains[c][19])) << c;
  // One more use is no reason to change anything.
  advertiser_->Used(chains[1], kSecond);
  EXPECT_EQ(Exchange(2 * kSecond), 0u);
  // Half-lives later, what is used now is hotter.
  for (int use = 0; use < 2; ++use) advertiser_->Used(chains[1], 6'000 * kSecond);
  Exchange(6'000 * kSecond);
  EXPECT_TRUE(held_.Holds(PeerId(1), chains[1][19]));
}

TEST_F(AdvertiserTest, PrefillsAreToldOutsideTheBudgetAndCounted) {
  Start({.boot = BootId(7), .budget = Bytes(0)});
  const std::vector<uint64_t> keys = Chain(1, 10);
  advertiser_->PrefillBegan(keys);
  advertiser_->PrefillBegan(std::span(keys).first(4));
  Exchange(0);
  std::vector<PeerDepth> found;
  prefilling_.Lookup(keys, 0, &found);
  EXPECT_EQ(found, (std::vector<PeerDepth>{{PeerId(1), 10}}));
  advertiser_->PrefillEnded(keys);
  EXPECT_EQ(Exchange(1), 6u);
  advertiser_->PrefillEnded(std::span(keys).first(4));
  EXPECT_EQ(Exchange(2), 4u);
  EXPECT_EQ(prefilling_.blocks(PeerId(1)), 0u);
  advertiser_->PrefillBegan(keys);
  advertiser_->PrefillEnded(keys);
  advertiser_->PrefillEnded(keys);
  EXPECT_EQ(Exchange(3), 0u);
  EXPECT_EQ(advertiser_->counters().unknown, 10u);
}

TEST_F(AdvertiserTest, ADigestComesWhenNothingElseDoes) {
  Start({.boot = BootId(7), .digest_every = 5 * kSecond});
  Exchange(0);
  advertiser_->Flush(4 * kSecond);
  EXPECT_TRUE(Take().empty());
  advertiser_->Flush(5 * kSecond);
  EXPECT_EQ(Take().size(), 1u);
}

// FAULTS E5: however far behind and however many, they cost a few words each.
TEST_F(AdvertiserTest, ASlowSubscriberGetsASnapshotLater) {
  Start({.boot = BootId(7), .backlog = Bytes(64 << 10), .keys_per_piece = 1000});
  std::vector<SubscriberId> many;
  for (int i = 0; i < 500; ++i) many.push_back(advertiser_->Subscribe());
  for (const SubscriberId id : many) ASSERT_NE(advertiser_->Take(id), nullptr);
  Exchange(0);
  const uint64_t before = advertiser_->memory().value();
  for (uint32_t round = 0; round < 200; ++round) {
    const std::vector<uint64_t> keys = Chain(round, 500);
    advertiser_->Appeared({}, keys, Tier::kHost, round);
    advertiser_->Flush(round);
    if (round % 50 != 49) advertiser_->Vanished(keys, Tier::kHost);
  }
  EXPECT_LE(advertiser_->memory().value(), before + (64 << 10) + 2500 * 100);
  uint64_t keys = 0;
  for (const auto& piece : Take()) {
    EXPECT_EQ(reader_.Apply(*piece), FeedVerdict::kApplied);
    keys += piece->keys();
  }
  EXPECT_EQ(advertiser_->counters().fell_behind, 1u);
  EXPECT_EQ(keys, 2000u);  // the snapshot alone, in parts
  EXPECT_EQ(held_.blocks(PeerId(1)), 2000u);
  EXPECT_TRUE(reader_.complete());
}

TEST_F(AdvertiserTest, ABrokenStreamGoesOnWhereItWas) {
  Start({.boot = BootId(7)});
  const std::vector<uint64_t> keys = Chain(1, 100);
  advertiser_->Appeared({}, std::span(keys).first(90), Tier::kHost, 0);
  Exchange(0);
  reader_.Interrupted();
  advertiser_->Unsubscribe(id_);
  advertiser_->Appeared(keys[89], std::span(keys).subspan(90), Tier::kHost, 0);
  id_ = advertiser_->Subscribe(reader_.boot(), reader_.sequence());
  EXPECT_EQ(Exchange(1), 10u);
  EXPECT_EQ(held_.blocks(PeerId(1)), 100u);
  // Not so in another life.
  id_ = advertiser_->Subscribe(BootId(8), reader_.sequence());
  EXPECT_EQ(Take().front()->part, 1u);
}

// At every piece what was told is closed, whatever comes, goes and heats up in between.
TEST_F(AdvertiserTest, EveryPieceLeavesAClosedView) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Start({.boot = BootId(7), .budget = Bytes(8 * random.Between(50, 400)), .keys_per_piece = 7});
    std::map<uint64_t, uint64_t> parent_of;  // 0: a root
    std::vector<std::vector<uint64_t>> chains;
    for (uint32_t c = 0; c < 20; ++c) {
      std::vector<uint64_t> keys;
      if (c > 0 && !random.OneIn(3)) {
        const auto& above = chains[random.Below(c)];
        keys.assign(above.begin(), above.begin() + random.Below(above.size()) + 1);
      }
      for (uint64_t left = random.Between(1, 40); left > 0; --left) keys.push_back(random.Next());
      for (size_t i = 0; i < keys.size(); ++i) parent_of[keys[i]] = i == 0 ? 0 : keys[i - 1];
      chains.push_back(std::move(keys));
    }
    std::set<uint64_t> view;
    bool complete = false;
    for (int step = 0; step < 1500; ++step) {
      const std::vector<uint64_t>& chain = chains[random.Below(chains.size())];
      const size_t depth = random.Below(chain.size() + 1);
      const Nanos now = step * kSecond * 20;
      switch (random.Below(6)) {
        case 0:
        case 1:
          advertiser_->Appeared({}, std::span(chain).first(depth), Tier::kHost, now);
          break;
        case 2:
          advertiser_->Vanished(std::span(chain).subspan(depth).first(depth < chain.size()),
                                Tier::kHost);
          break;
        case 3:
          advertiser_->Used(std::span(chain).first(depth), now);
          break;
        default: {
          advertiser_->Flush(now);
          ASSERT_EQ(advertiser_->CheckInvariants(), "");
          while (const auto piece = advertiser_->Take(id_)) {
            for (const uint64_t key : piece->removes) view.erase(key);
            for (const uint64_t key : piece->adds) view.insert(key);
            complete |= piece->last;
            if (!complete) continue;
            for (const uint64_t key : view) {
              ASSERT_TRUE(parent_of[key] == 0 || view.contains(parent_of[key]));
            }
          }
          ASSERT_EQ(view.size(), advertiser_->told().keys);
        }
      }
    }
  }
}

// ---- FeedReader

class FeedReaderTest : public testing::Test {
 protected:
  static FeedPiece Piece(uint64_t sequence, uint32_t part, std::vector<uint64_t> adds, bool last) {
    FeedPiece piece;
    piece.boot = BootId(7);
    piece.sequence = sequence;
    piece.part = part;
    piece.last = last;
    piece.adds = std::move(adds);
    return piece;
  }
  FeedPiece Snapshot(uint64_t sequence, const std::vector<uint64_t>& keys) {
    FeedPiece piece = Piece(sequence, 1, keys, true);
    for (const uint64_t key : keys) piece.held.Add(key);
    return piece;
  }
  FeedPiece Delta(uint64_t sequence, uint64_t key, KeySum sum) {
    FeedPiece piece = Piece(sequence, 0, {key}, false);
    piece.held = sum;
    piece.held.Add(key);
    return piece;
  }

  Directory held_{1}, prefilling_{2};
  FeedReader reader_{{.peer = PeerId(1), .blocks_max = 1000}, &held_, &prefilling_};
};

// FAULTS E1
TEST_F(FeedReaderTest, AGapWantsASnapshotAndKeepsTheViewUntilThen) {
  const FeedPiece snapshot = Snapshot(5, {1, 2, 3});
  EXPECT_EQ(reader_.Apply(snapshot), FeedVerdict::kApplied);
  EXPECT_EQ(reader_.Apply(Delta(7, 4, snapshot.held)), FeedVerdict::kGap);
  EXPECT_TRUE(reader_.wants_snapshot());
  EXPECT_EQ(held_.blocks(PeerId(1)), 3u);
  EXPECT_EQ(reader_.Apply(Delta(6, 4, snapshot.held)), FeedVerdict::kWaiting);
  EXPECT_EQ(reader_.Apply(Snapshot(8, {1, 9})), FeedVerdict::kApplied);
  EXPECT_EQ(held_.blocks(PeerId(1)), 2u);
  EXPECT_TRUE(reader_.complete());
}

// FAULTS E1
TEST_F(FeedReaderTest, AnotherLifeDropsTheViewAtOnce) {
  reader_.Apply(Snapshot(5, {1, 2, 3}));
  FeedPiece other = Delta(6, 4, {});
  other.boot = BootId(8);
  EXPECT_EQ(reader_.Apply(other), FeedVerdict::kOtherBoot);
  EXPECT_EQ(held_.blocks(PeerId(1)), 0u);
  FeedPiece fresh = Snapshot(1, {5});
  fresh.boot = BootId(8);
  EXPECT_EQ(reader_.Apply(fresh), FeedVerdict::kApplied);
  EXPECT_EQ(held_.blocks(PeerId(1)), 1u);
}

// FAULTS E1
TEST_F(FeedReaderTest, AWrongDigestWantsASnapshot) {
  const FeedPiece snapshot = Snapshot(5, {1, 2, 3});
  reader_.Apply(snapshot);
  FeedPiece delta = Delta(6, 4, snapshot.held);
  delta.adds[0] = 5;  // as if a bit had flipped
  EXPECT_EQ(reader_.Apply(delta), FeedVerdict::kWrongDigest);
  EXPECT_TRUE(reader_.wants_snapshot());
}

// FAULTS E4, G2
TEST_F(FeedReaderTest, NonsenseIsRefusedAndHarmsNobodyElse) {
  FeedReader other({.peer = PeerId(2)}, &held_, &prefilling_);
  other.Apply(Snapshot(5, {1, 2}));
  std::vector<FeedPiece> nonsense(4, Piece(6, 0, {4}, false));
  nonsense[0].boot = BootId(0);
  nonsense[1].last = true;
  nonsense[2].part = 1;
  nonsense[2].removes = {1};
  nonsense[3].adds.assign(1001, 9);
  for (const FeedPiece& piece : nonsense) {
    reader_.Apply(Snapshot(5, {1, 2, 3}));
    const FeedVerdict verdict = reader_.Apply(piece);
    EXPECT_TRUE(verdict == FeedVerdict::kMalformed || verdict == FeedVerdict::kTooMuch);
    EXPECT_TRUE(reader_.wants_snapshot());
    EXPECT_EQ(held_.blocks(PeerId(1)), 0u);
    EXPECT_EQ(held_.blocks(PeerId(2)), 2u);
  }
  EXPECT_EQ(reader_.count(FeedVerdict::kMalformed), 3u);
  EXPECT_EQ(reader_.count(FeedVerdict::kTooMuch), 1u);
  EXPECT_EQ(reader_.Malformed(), FeedVerdict::kMalformed);
}

TEST_F(FeedReaderTest, ARepeatedPieceHasNoEffect) {
  const FeedPiece snapshot = Snapshot(5, {1, 2, 3}), delta = Delta(6, 4, snapshot.held);
  reader_.Apply(snapshot);
  EXPECT_EQ(reader_.Apply(snapshot), FeedVerdict::kRepeated);
  EXPECT_EQ(reader_.Apply(delta), FeedVerdict::kApplied);
  EXPECT_EQ(reader_.Apply(delta), FeedVerdict::kRepeated);
  EXPECT_TRUE(reader_.complete());
}

TEST_F(FeedReaderTest, ASnapshotIsSeenWhenItIsWhole) {
  std::vector<PeerDepth> found;
  const std::vector<uint64_t> keys = {1, 2};
  reader_.Apply(Piece(5, 1, {1}, false));
  held_.Lookup(keys, 0, &found);
  EXPECT_TRUE(found.empty());
  FeedPiece second = Piece(5, 2, {2}, true);
  second.held = Snapshot(5, keys).held;
  EXPECT_EQ(reader_.Apply(second), FeedVerdict::kApplied);
  held_.Lookup(keys, 0, &found);
  EXPECT_EQ(found, (std::vector<PeerDepth>{{PeerId(1), 2}}));
}

}  // namespace
}  // namespace pando
