#include "radix/pages/page_table.h"

#include <gtest/gtest.h>

#include <set>

namespace pando {
namespace {

constexpr SpaceId kSpace(0), kOther(1);

class PageTableTest : public testing::Test {
 protected:
  PageTableTest() : table_({.space_share = 0.5, .extent_pages_max = 4}) {
    EXPECT_TRUE(table_.EnsureSpace(kSpace, Bytes(1)));
    EXPECT_TRUE(table_.EnsureSpace(kOther, Bytes(8ull << 20)));
  }
  void TearDown() override { EXPECT_EQ(table_.Check(), ""); }

  // Brings a fresh page into a state.
  PageId Make(PageState state) {
    if (table_.free_pages(kSpace) == 0) {
      EXPECT_TRUE(table_.Take(kSpace));
    }
    const PageId page = table_.Reserve(kSpace);
    if (state == PageState::kReserved) return page;
    if (state != PageState::kCommitted) table_.Hold(page);
    if (state == PageState::kCommitted || state == PageState::kHeld) {
      EXPECT_TRUE(table_.Commit(page, 9));
    }
    if (state == PageState::kQuarantined) {
      EXPECT_FALSE(table_.Detach(page));
    }
    if (state == PageState::kFree) {
      table_.Release(table_.ref(page));
      EXPECT_TRUE(table_.Detach(page));
    }
    return page;
  }
  void Apply(PageId page, PageOp op) {
    if (op == PageOp::kHold) table_.Hold(page);
    if (op == PageOp::kCommit) table_.Commit(page, 9);
    if (op == PageOp::kRelease || op == PageOp::kReleaseLast) table_.Release(table_.ref(page));
    if (op == PageOp::kDetach) table_.Detach(page);
  }

  PageTable table_;
};

// The whole table, by doing it: each state and operation, and the deaths too. FAULTS B2, G3.
TEST_F(PageTableTest, EveryStateAndOperation) {
  testing::FLAGS_gtest_death_test_style = "fast";
  for (uint32_t e = 0; e < 16; ++e) ASSERT_TRUE(table_.AddExtent(ExtentId(e)));
  for (size_t s = 0; s < kPageStates; ++s) {
    for (const PageOp op :
         {PageOp::kHold, PageOp::kCommit, PageOp::kReleaseLast, PageOp::kDetach}) {
      const auto state = static_cast<PageState>(s);
      const PageId page = Make(state);
      const PageNext next = NextPageState(state, op);
      SCOPED_TRACE(testing::Message() << "state " << s << " operation " << static_cast<int>(op));
      ASSERT_EQ(table_.entry(page).state, state);
      if (next == PageNext::kBroken) {
        EXPECT_DEATH(Apply(page, op), "broken invariant");
        continue;
      }
      Apply(page, op);
      const PageState now = next == PageNext::kRefused ? state : static_cast<PageState>(next);
      EXPECT_EQ(table_.entry(page).state, now);
      EXPECT_EQ(table_.Check(), "");
    }
  }
}

TEST_F(PageTableTest, AHeldPageIsFreeOnlyAfterItsLastRelease) {
  ASSERT_TRUE(table_.AddExtent(ExtentId(0)));
  const PageId page = Make(PageState::kHeld);
  table_.Hold(page);
  const PageRef ref = table_.ref(page);
  EXPECT_FALSE(table_.Detach(page));
  table_.Release(ref);
  EXPECT_EQ(table_.Count(kSpace, PageState::kQuarantined), 1u);
  table_.Release(ref);
  EXPECT_EQ(table_.free_pages(kSpace), 4u);
  EXPECT_DEATH(table_.Release(ref), "not held");
}

TEST_F(PageTableTest, NoPageAndGenerationTwiceAlsoAcrossSpaces) {
  ASSERT_TRUE(table_.AddExtent(ExtentId(0)));
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (int round = 0; round < 20; ++round) {
    const SpaceId space = round % 2 == 0 ? kSpace : kOther;
    ASSERT_TRUE(table_.Take(space));
    for (int use = 0; use < 3; ++use) {
      std::vector<PageId> pages;
      for (int i = 0; i < 1 + round % 4; ++i) pages.push_back(table_.Reserve(space));
      for (const PageId page : pages) {
        const PageRef ref = table_.ref(page);
        EXPECT_TRUE(seen.emplace(ref.page.value(), ref.generation.value()).second);
        table_.Detach(page);
      }
    }
    EXPECT_EQ(table_.ReleaseEmpty(space), 1u);
    EXPECT_EQ(table_.extents_unowned(), 1u);
  }
}

TEST_F(PageTableTest, ASpaceKeepsToItsShareButMayHaveOne) {
  ASSERT_TRUE(table_.AddExtent(ExtentId(0)));
  EXPECT_FALSE(table_.AddExtent(ExtentId(0)));
  EXPECT_EQ(table_.Takeable(kSpace), 1u);
  for (uint32_t e = 1; e < 5; ++e) ASSERT_TRUE(table_.AddExtent(ExtentId(e)));
  EXPECT_EQ(table_.Takeable(kSpace), 2u);
  ASSERT_TRUE(table_.Take(kSpace));
  ASSERT_TRUE(table_.Take(kSpace));
  EXPECT_EQ(table_.Takeable(kSpace), 0u);
  EXPECT_EQ(table_.Takeable(kOther), 2u);
}

}  // namespace
}  // namespace pando
