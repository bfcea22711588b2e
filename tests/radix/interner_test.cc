#include "radix/pool/interner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pando {
namespace {

TEST(InternerTest, EqualPathsAreOneIdAndOthersAreNot) {
  Interner strings(1);
  const uint32_t corpus = strings.Intern(kNoNode, "corpus");
  const uint32_t tenant = strings.Intern(corpus, "tenant");
  EXPECT_EQ(strings.Intern(kNoNode, "corpus"), corpus);
  EXPECT_EQ(strings.Find(corpus, "tenant"), tenant);
  EXPECT_NE(strings.Intern(kNoNode, "tenant"), tenant);
  EXPECT_EQ(strings.Find(tenant, "tenant"), kNoNode);
  EXPECT_EQ(strings.bytes(tenant), "tenant");
  EXPECT_EQ(strings.parent(tenant), corpus);
}

// FAULTS C1: what nobody uses is forgotten, parents with it, and ids are used again.
TEST(InternerTest, TheLastReleaseForgetsTheWholePath) {
  Interner strings(1);
  const uint64_t empty = strings.memory();
  const uint32_t corpus = strings.Intern(kNoNode, "corpus");
  const uint32_t tenant = strings.Intern(corpus, "tenant");
  strings.Release(corpus);  // lives on: the tenant's path goes through it
  EXPECT_EQ(strings.Find(kNoNode, "corpus"), corpus);
  strings.AddRef(tenant);
  strings.Release(tenant);
  EXPECT_EQ(strings.size(), 2u);
  strings.Release(tenant);
  EXPECT_EQ(strings.size(), 0u);
  EXPECT_EQ(strings.Find(kNoNode, "corpus"), kNoNode);
  strings.Intern(kNoNode, "another");
  strings.Intern(kNoNode, "and another");
  EXPECT_EQ(strings.ids(), 2u) << "ids of entries that went are used again";
  EXPECT_GT(strings.memory(), empty);
}

TEST(InternerTest, ManyComeAndGoWithoutAGrowingIndex) {
  Interner strings(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<uint32_t> ids;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(strings.Intern(kNoNode, std::to_string(round * 200 + i)));
    }
    for (const uint32_t id : ids) strings.Release(id);
  }
  EXPECT_EQ(strings.size(), 0u);
  EXPECT_EQ(strings.ids(), 200u);
}

}  // namespace
}  // namespace pando
