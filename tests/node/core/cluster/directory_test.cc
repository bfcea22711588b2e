// Directory against plain sets: random calls, exhaustive small cases, peers that leave and lie.
#include "node/core/cluster/directory.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/node/core/cluster/naive_directory.h"
#include "tests/sim/random.h"

namespace pando {

std::ostream& operator<<(std::ostream& out, const PeerDepth& found) {
  return out << "{peer " << found.peer << ", depth " << found.depth << "}";
}

namespace {

using sim::Random;

std::vector<PeerDepth> Lookup(const Directory& directory, std::span<const uint64_t> keys,
                              uint32_t from) {
  std::vector<PeerDepth> out;
  directory.Lookup(keys, from, &out);
  return out;
}

std::vector<uint64_t> Chain(uint64_t name, uint32_t length) {
  std::vector<uint64_t> keys(length);
  for (uint32_t i = 0; i < length; ++i) keys[i] = sim::Mix(name << 32, i);
  return keys;
}

void ExpectSame(Directory& directory, NaiveDirectory& naive, uint32_t peers) {
  ASSERT_EQ(directory.CheckInvariants(), "");
  uint64_t total = 0;
  for (uint32_t peer = 0; peer < peers; ++peer) {
    EXPECT_EQ(directory.blocks(PeerId(peer)), naive.held(peer).size()) << "peer " << peer;
    EXPECT_EQ(directory.digest(PeerId(peer)), naive.digest(peer)) << "peer " << peer;
    total += naive.held(peer).size();
  }
  EXPECT_GE(directory.holder_blocks(), total);  // and what was not swept yet
}

TEST(DirectoryTest, EmptyKnowsNobody) {
  const Directory directory(1);
  EXPECT_TRUE(Lookup(directory, Chain(1, 10), 0).empty());
  EXPECT_TRUE(Lookup(directory, {}, 0).empty());
  EXPECT_EQ(directory.blocks(PeerId(3)), 0u);
  EXPECT_EQ(directory.CheckInvariants(), "");
}

TEST(DirectoryTest, TheExampleOfTheHeader) {
  Directory directory(1);
  const std::vector<uint64_t> keys = Chain(1, 6);
  directory.Add(PeerId(1), std::span(keys).first(4));
  directory.Add(PeerId(4), std::span(keys).first(5));
  directory.Add(PeerId(9), std::span(keys).first(1));
  const std::vector<PeerDepth> expected = {{PeerId(4), 5}, {PeerId(1), 4}};
  EXPECT_EQ(Lookup(directory, keys, 1), expected);
  EXPECT_EQ(Lookup(directory, keys, 6), std::vector<PeerDepth>{});
}

// FAULTS E2: a block counts once a peer, and goes with one Remove, the owner's last.
TEST(DirectoryTest, TwiceToldCountsOnceAndIsCounted) {
  Directory directory(1);
  const std::vector<uint64_t> keys = Chain(1, 100);
  const Applied first = directory.Add(PeerId(2), keys);
  EXPECT_EQ(first.changed, 100u);
  EXPECT_EQ(first.redundant, 0u);
  const Applied again = directory.Add(PeerId(2), keys);
  EXPECT_EQ(again.changed, 0u);
  EXPECT_EQ(again.redundant, 100u);
  EXPECT_EQ(directory.holder_blocks(), 100u);
  const Applied other = directory.Remove(PeerId(3), keys);
  EXPECT_EQ(other.redundant, 100u);
  EXPECT_EQ(directory.Remove(PeerId(2), keys).changed, 100u);
  EXPECT_EQ(directory.unique_blocks(), 0u);
  EXPECT_EQ(directory.digest(PeerId(2)), 0u);
}

// Every depth of three peers on short chains, and of two on longer ones, from everywhere.
TEST(DirectoryTest, EveryDepthOfEveryPeer) {
  for (uint32_t length = 1; length <= 6; ++length) {
    const std::vector<uint64_t> keys = Chain(length, length);
    const uint32_t n = length + 1;
    for (uint32_t depths = 0; depths < n * n * n; ++depths) {
      Directory directory(depths);
      NaiveDirectory naive;
      const uint32_t of[] = {depths % n, depths / n % n, depths / n / n};
      for (uint32_t peer = 0; peer < 3; ++peer) {
        directory.Add(PeerId(peer), std::span(keys).first(of[peer]));
        naive.Add(peer, std::span(keys).first(of[peer]));
      }
      for (uint32_t from = 0; from <= length; ++from) {
        ASSERT_EQ(Lookup(directory, keys, from), naive.Lookup(keys, from)) << depths << " " << from;
      }
    }
  }
}

TEST(DirectoryTest, EveryPairOfDepthsOnLongerChains) {
  for (const uint32_t length : {33u, 64u, 97u}) {
    const std::vector<uint64_t> keys = Chain(length, length);
    for (uint32_t a = 0; a <= length; ++a) {
      Directory directory(a);
      directory.Add(PeerId(7), std::span(keys).first(a));
      for (uint32_t b = 0; b <= length; ++b) {
        if (b > 0) directory.Add(PeerId(3), std::span(keys).subspan(b - 1, 1));
        for (const uint32_t from : {0u, 1u, length / 2, length - 1}) {
          std::vector<PeerDepth> expected;
          if (b > from) expected.push_back({PeerId(3), b});
          if (a > from) expected.push_back({PeerId(7), a});
          if (a > b && b > from) std::swap(expected[0], expected[1]);
          ASSERT_EQ(Lookup(directory, keys, from), expected) << a << " " << b << " " << from;
        }
      }
    }
  }
}

// Chains that share beginnings; each peer's view stays closed from the root.
class RandomCalls {
 public:
  RandomCalls(uint64_t seed, uint32_t peers)
      : random_(seed), directory_(random_.Next()), peers_(peers) {
    for (uint32_t c = 0; c < 40; ++c) {
      std::vector<uint64_t> keys;
      if (c > 0 && !random_.OneIn(4)) {
        const std::vector<uint64_t>& above = chains_[random_.Below(c)];
        keys.assign(above.begin(), above.begin() + random_.Below(above.size()) + 1);
      }
      for (uint64_t left = random_.Between(1, 120); left > 0; --left)
        keys.push_back(random_.Next());
      chains_.push_back(std::move(keys));
    }
  }

  void Step() {
    const auto peer = static_cast<uint32_t>(random_.Below(peers_));
    const std::vector<uint64_t>& chain = chains_[random_.Below(chains_.size())];
    const auto depth = static_cast<uint32_t>(random_.Below(chain.size() + 1));
    switch (random_.Below(20)) {
      case 0:
        directory_.RemovePeer(PeerId(peer));
        naive_.RemovePeer(peer);
        break;
      case 1:
      case 2:
      case 3:
        directory_.Sweep(random_.Below(2000));
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        RemoveBelow(peer, chain, depth);
        break;
      case 8:
      case 9:
      case 10:
      case 11:
      case 12: {
        const std::span keys = std::span(chain).first(depth);
        ASSERT_EQ(directory_.Add(PeerId(peer), keys).changed, naive_.Add(peer, keys));
        break;
      }
      default:
        ASSERT_EQ(Lookup(directory_, chain, depth), naive_.Lookup(chain, depth));
        break;
    }
  }

  void Check() { ExpectSame(directory_, naive_, peers_); }
  void CheckSwept() {
    while (directory_.Sweep(1)) {
    }
    Check();
    EXPECT_EQ(directory_.unique_blocks(), naive_.unique_blocks());
  }

 private:
  // The block at `depth` of this chain and all that the peer has below it, on any chain.
  void RemoveBelow(uint32_t peer, const std::vector<uint64_t>& chain, uint32_t depth) {
    if (depth == chain.size()) return;
    std::set<uint64_t> gone;
    for (const std::vector<uint64_t>& other : chains_) {
      if (depth < other.size() && other[depth] == chain[depth]) {
        gone.insert(other.begin() + depth, other.end());
      }
    }
    const std::vector<uint64_t> keys(gone.begin(), gone.end());
    const Applied applied = directory_.Remove(PeerId(peer), keys);
    ASSERT_EQ(applied.changed, naive_.Remove(peer, keys));
    ASSERT_EQ(applied.changed + applied.redundant, keys.size());
  }

  Random random_;
  Directory directory_;
  NaiveDirectory naive_;
  const uint32_t peers_;
  std::vector<std::vector<uint64_t>> chains_;
};

// FAULTS E3
TEST(DirectoryTest, RandomCallsSayWhatPlainSetsSay) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCalls calls(seed, seed % 2 == 0 ? 3 : 12);
    for (int step = 0; step < 2000; ++step) {
      calls.Step();
      if (HasFatalFailure()) return;
      if (step % 100 == 0) calls.Check();
    }
    calls.CheckSwept();
    if (HasFailure()) return;
  }
}

TEST(DirectoryTest, MoreThanAThousandPeers) {
  constexpr uint32_t kPeers = 1100;
  Directory directory(5);
  NaiveDirectory naive;
  Random random(5);
  const std::vector<uint64_t> chain = Chain(5, 200);
  for (uint32_t peer = 0; peer < kPeers; ++peer) {
    const std::span keys = std::span(chain).first(random.Below(201));
    directory.Add(PeerId(peer), keys);
    naive.Add(peer, keys);
  }
  EXPECT_EQ(directory.CheckInvariants(), "");
  for (const uint32_t from : {0u, 100u, 199u}) {
    EXPECT_EQ(Lookup(directory, chain, from), naive.Lookup(chain, from));
  }
  for (uint32_t peer = 0; peer < kPeers; peer += 2) {
    directory.RemovePeer(PeerId(peer));
    naive.RemovePeer(peer);
  }
  EXPECT_EQ(Lookup(directory, chain, 0), naive.Lookup(chain, 0));
  while (directory.Sweep(100)) {
  }
  EXPECT_EQ(Lookup(directory, chain, 0), naive.Lookup(chain, 0));
  EXPECT_EQ(directory.CheckInvariants(), "");
}

TEST(DirectoryTest, APeerThatLeftIsGoneAtOnceAndSweptInSteps) {
  Directory directory(1);
  const std::vector<uint64_t> keys = Chain(1, 20'000);
  directory.Add(PeerId(1), keys);
  directory.Add(PeerId(2), std::span(keys).first(10));
  directory.RemovePeer(PeerId(1));
  EXPECT_EQ(Lookup(directory, keys, 0), (std::vector<PeerDepth>{{PeerId(2), 10}}));
  EXPECT_EQ(directory.blocks(PeerId(1)), 0u);
  // It comes back while its former view is still being swept.
  uint32_t steps = 0;
  for (bool more = true; more; ++steps) {
    more = directory.Sweep(500);
    directory.Add(PeerId(1), std::span(keys).subspan(steps * 100, 100));
    ASSERT_EQ(directory.blocks(PeerId(1)), (steps + 1) * 100);
  }
  EXPECT_GT(steps, 5u);
  EXPECT_EQ(directory.holder_blocks(), steps * 100 + 10);
  EXPECT_EQ(Lookup(directory, keys, 0)[0], (PeerDepth{PeerId(1), steps * 100}));
  EXPECT_EQ(directory.CheckInvariants(), "");
}

TEST(DirectoryTest, AHiddenViewIsNotSeenUntilItIsShown) {
  Directory directory(1);
  const std::vector<uint64_t> keys = Chain(1, 50);
  directory.Add(PeerId(1), keys);
  directory.RemovePeer(PeerId(1), /*hidden=*/true);
  directory.Add(PeerId(1), std::span(keys).first(30));
  EXPECT_TRUE(Lookup(directory, keys, 0).empty());
  directory.Show(PeerId(1));
  EXPECT_EQ(Lookup(directory, keys, 0), (std::vector<PeerDepth>{{PeerId(1), 30}}));
}

// FAULTS E3, G4: with holes, what is promised of an answer holds all the same.
TEST(DirectoryTest, APeerWithHolesIsClaimedOnlyWhereItWasSeen) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    Directory directory(random.Next());
    const std::vector<uint64_t> keys = Chain(round, 1 + static_cast<uint32_t>(random.Below(200)));
    for (uint32_t peer = 0; peer < 4; ++peer) {
      for (const uint64_t key : keys) {
        if (!random.OneIn(1 + random.Below(30))) directory.Add(PeerId(peer), {&key, 1});
      }
    }
    const auto from = static_cast<uint32_t>(random.Below(keys.size()));
    for (const PeerDepth& found : Lookup(directory, keys, from)) {
      ASSERT_GT(found.depth, from);
      ASSERT_LE(found.depth, keys.size());
      EXPECT_TRUE(directory.Holds(found.peer, keys[0]));
      EXPECT_TRUE(directory.Holds(found.peer, keys[from]));
      EXPECT_TRUE(directory.Holds(found.peer, keys[found.depth - 1]));
      if (found.depth < keys.size()) {
        EXPECT_FALSE(directory.Holds(found.peer, keys[found.depth]));
      }
    }
  }
}

TEST(DirectoryTest, TheSeedChangesNoAnswer) {
  for (const uint64_t seed : {0ull, 1ull, ~0ull}) {
    Directory directory(seed);
    std::vector<uint64_t> keys(5000);
    std::iota(keys.begin(), keys.end(), 0);  // whatever a peer may send as keys
    EXPECT_EQ(directory.Add(PeerId(1), keys).changed, keys.size());
    for (const uint64_t key : {~0ull, ~0ull - 1, 1ull << 63}) {
      EXPECT_EQ(directory.Add(PeerId(1), {&key, 1}).changed, 1u);
    }
    EXPECT_EQ(directory.CheckInvariants(), "");
    EXPECT_EQ(Lookup(directory, keys, 0), (std::vector<PeerDepth>{{PeerId(1), 5000}}));
  }
}

TEST(DirectoryTest, MemoryComesBackWhenBlocksGo) {
  Directory directory(1);
  const uint64_t empty = directory.memory().value();
  const std::vector<uint64_t> keys = Chain(1, 200'000);
  directory.Add(PeerId(1), keys);
  EXPECT_LE(directory.memory().value() - empty, 24 * keys.size());  // of one holder each
  directory.Remove(PeerId(1), keys);
  EXPECT_EQ(directory.CheckInvariants(), "");
  EXPECT_LE(directory.memory().value() - empty, keys.size());  // a twentieth
}

}  // namespace
}  // namespace pando
