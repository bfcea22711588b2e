// The parts of Directory alone: mixes, the table, the sets.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "node/core/cluster/holder_sets.h"
#include "node/core/cluster/key_table.h"
#include "node/core/cluster/mix.h"
#include "tests/sim/random.h"

namespace pando {
namespace {

using sim::Random;

TEST(MixTest, AMixedKeyNamesItsKey) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const KeyMixer mixer(random.Next());
    for (const uint64_t key : {random.Next(), uint64_t{0}, ~uint64_t{0}}) {
      ASSERT_EQ(mixer.Unmix(mixer.Mix(key)), key);
    }
  }
}

// A part of the protocol between nodes.
TEST(MixTest, DigestsOfKnownKeys) {
  EXPECT_EQ(DigestOf(0), 0u);
  EXPECT_EQ(DigestOf(1), 0x5692161d100b05e5u);
  EXPECT_EQ(DigestOf(0x9e3779b97f4a7c15u), 0xe220a8397b1dcdafu);
}

TEST(KeyTableTest, RandomCallsSayWhatAMapSays) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    KeyTable table(seed);
    std::map<uint64_t, uint32_t> model;
    const uint64_t universe = seed % 2 == 0 ? 300 : 100'000;
    for (int step = 0; step < 60'000; ++step) {
      // Growing, then shrinking, then both.
      const bool insert = step < 30'000   ? !random.OneIn(5)
                          : step < 50'000 ? random.OneIn(5)
                                          : random.OneIn(2);
      const uint64_t key = random.Below(universe), hash = table.HashOf(key);
      ASSERT_EQ(table.KeyOf(hash), key);
      uint32_t* word = table.Find(hash);
      ASSERT_EQ(word != nullptr, model.contains(key));
      if (word != nullptr) {
        ASSERT_EQ(*word, model[key]);
      }
      if (insert) {
        word = table.FindOrInsert(hash);
        *word = model[key] = static_cast<uint32_t>(random.Below(1000));
      } else if (word != nullptr) {
        table.Erase(hash, word);
        model.erase(key);
      }
      ASSERT_EQ(table.size(), model.size());
      if (step % 5000 == 0) {
        ASSERT_EQ(table.CheckInvariants(), "");
      }
    }
    ASSERT_EQ(table.CheckInvariants(), "");
  }
}

TEST(KeyTableTest, AVisitErasesWhatItMakesNone) {
  KeyTable table(3);
  for (uint64_t key = 0; key < 20'000; ++key) *table.FindOrInsert(table.HashOf(key)) = 1;
  for (uint32_t s = 0; s < table.segments(); ++s) {
    table.VisitSegment(s, [&](uint64_t hash, uint32_t* word) {
      if (table.KeyOf(hash) % 3 != 0) *word = KeyTable::kNone;
    });
  }
  EXPECT_EQ(table.CheckInvariants(), "");
  EXPECT_EQ(table.size(), 6667u);
  for (uint64_t key = 0; key < 20'000; ++key) {
    ASSERT_EQ(table.Find(table.HashOf(key)) != nullptr, key % 3 == 0);
  }
}

// All sequences of seven steps on sets of three holders.
TEST(HolderSetsTest, EverySequenceOfSteps) {
  constexpr uint32_t kHolders = 3, kSteps = 7, kChoices = 2 * kHolders;
  uint32_t sequences = 1;
  for (uint32_t i = 0; i < kSteps; ++i) sequences *= kChoices;
  HolderSets sets;
  for (uint32_t sequence = 0; sequence < sequences; ++sequence) {
    HolderSet set = kNoHolder;
    std::set<uint32_t> model;
    for (uint32_t step = 0, left = sequence; step < kSteps; ++step, left /= kChoices) {
      const uint32_t holder = left % kChoices / 2;
      if (left % 2 == 0) {
        set = sets.With(set, holder);
        model.insert(holder);
      } else {
        set = sets.Without(set, holder);
        model.erase(holder);
      }
      ASSERT_TRUE(std::ranges::equal(sets.Members(set), model)) << "sequence " << sequence;
    }
    for (uint32_t holder = 0; holder < kHolders; ++holder) set = sets.Without(set, holder);
    ASSERT_EQ(set, kNoHolder);
    ASSERT_EQ(sets.size(), 0u);
  }
  EXPECT_EQ(sets.CheckInvariants(), "");
}

TEST(HolderSetsTest, EqualSetsAreOne) {
  HolderSets sets;
  const HolderSet a = sets.With(sets.With(sets.With(kNoHolder, 5), 3), 4);
  const HolderSet b = sets.With(sets.With(sets.With(kNoHolder, 4), 5), 3);
  EXPECT_EQ(a, b);
  EXPECT_EQ(sets.refs(HolderSets::IdOf(a)), 2u);
  EXPECT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets.CheckInvariants(), "");
}

}  // namespace
}  // namespace pando
