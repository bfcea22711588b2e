#include "radix/evict/lru.h"

#include <gtest/gtest.h>

namespace pando {
namespace {

class LruTest : public testing::Test {
 protected:
  LruTest() { EXPECT_TRUE(lru_.EnsureSpace(SpaceId(0)) && lru_.MakeRoom(16)); }
  void TearDown() override { EXPECT_EQ(lru_.Check(), ""); }
  static RunFacts Facts(uint32_t run) { return {RunId(run), SpaceId(0), {}, BlockCount(1)}; }
  void Add(uint32_t run, bool candidate) {
    lru_.Insert(Facts(run), {});
    lru_.SetCandidate(RunId(run), candidate);
  }
  // Victims until there is none.
  std::vector<uint32_t> Drain() {
    std::vector<uint32_t> order;
    while (const std::optional<RunId> victim = lru_.Victim(SpaceId(0))) {
      order.push_back(victim->value());
      lru_.Remove(Facts(victim->value()));
    }
    return order;
  }
  LruPolicy lru_;
};

TEST_F(LruTest, OldestUseFirst) {
  for (uint32_t run : {1, 2, 3, 4}) Add(run, true);
  lru_.Touch(Facts(2), {});
  EXPECT_EQ(Drain(), (std::vector<uint32_t>{1, 3, 4, 2}));
}

TEST_F(LruTest, APinnedRunIsPassedOverAndKeepsItsAge) {
  for (uint32_t run : {1, 2, 3, 4}) Add(run, run > 2);
  EXPECT_EQ(lru_.Victim(SpaceId(0)), RunId(3));
  lru_.SetCandidate(RunId(2), true);
  lru_.SetCandidate(RunId(1), true);  // comes back later, and is older still
  EXPECT_EQ(Drain(), (std::vector<uint32_t>{1, 2, 3, 4}));
}

TEST_F(LruTest, SplitPartsHaveOneAgeAndTheLowerGoesFirst) {
  for (uint32_t run : {1, 2, 3}) Add(run, true);
  lru_.Split(Facts(7), Facts(2));
  lru_.SetCandidate(RunId(7), true);
  EXPECT_EQ(Drain(), (std::vector<uint32_t>{1, 2, 7, 3}));
}

TEST_F(LruTest, NobodyToEvict) {
  Add(1, false);
  EXPECT_EQ(lru_.Victim(SpaceId(0)), std::nullopt);
  lru_.Remove(Facts(1));
}

}  // namespace
}  // namespace pando
