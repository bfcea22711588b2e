// A hundred kills with the day's seed. FAULTS B2, C1, C3, C4, D1, D6, E7.
#include "tests/e2e/kill/marathon.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstdio>

namespace pando::e2e {
namespace {

TEST(Marathon, AHundredKillsBreakNothing) {
  const auto day = static_cast<uint64_t>(time(nullptr)) / 86'400;
  const Report report = RunMarathon({.seed = day, .kills = 100, .seconds = 90});
  std::fputs(ToText(report).c_str(), stdout);
  EXPECT_TRUE(report.ok());
  EXPECT_GT(report.blocks_loaded, 0u);
}

}  // namespace
}  // namespace pando::e2e
