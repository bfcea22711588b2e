#include "client/ctl/ceiling.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "client/ctl/page_bytes.h"
#include "client/ctl/prompt_tokens.h"
#include "client/ctl/routing.h"
#include "client/ctl/trace.h"
#include "tests/paths.h"

namespace pando::ctl {
namespace {

std::vector<uint32_t> Ascending(size_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100u);
  return tokens;
}

// FAULTS A9: the last token is always computed. FAULTS F5: only the leading run counts.
TEST(CeilingTest, CountsLeadingFullBlocksAndLeavesOneToken) {
  Ceiling ceiling(16);
  const auto add = [&](const std::vector<uint32_t>& tokens) {
    const uint64_t before = ceiling.hit_tokens();
    const uint64_t hit = ceiling.Add(tokens.size(), BlockChain(tokens, 16));
    EXPECT_EQ(ceiling.hit_tokens() - before, hit);
    return hit;
  };
  EXPECT_EQ(add(Ascending(64)), 0u);
  EXPECT_EQ(add(Ascending(64)), 48u);
  EXPECT_EQ(add(Ascending(65)), 64u);
  EXPECT_EQ(add(Ascending(15)), 0u);
  EXPECT_EQ(add({}), 0u);
  std::vector<uint32_t> hole = Ascending(64);
  hole[20] = 1;
  EXPECT_EQ(add(hole), 16u);
  EXPECT_EQ(ceiling.prompt_tokens(), 64u + 64 + 65 + 15 + 64);
}

TEST(CeilingTest, OfTheFirst500RequestsOfTheConversationTrace) {
  const auto trace = ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz", 500);
  ASSERT_TRUE(trace.ok()) << trace.status();
  Ceiling ceiling(16);
  std::vector<uint32_t> tokens;
  for (size_t i = 0; i < trace->size(); ++i) {
    MakeTokens((*trace)[i], i, 0, &tokens);
    ceiling.Add(tokens.size(), BlockChain(tokens, 16));
  }
  // Counted by an independent script over (hash id, block in it): .1637 of all prompt tokens.
  EXPECT_EQ(ceiling.prompt_tokens(), 7'124'855u);
  EXPECT_EQ(ceiling.hit_tokens(), 1'166'336u);
  EXPECT_EQ(ceiling.blocks(), 372'173u);
}

TEST(RoutingTest, EachChoosesAsItsNameSays) {
  const TraceRequest a{0, 2000, 1, {0, 5, 6, 7}};
  const TraceRequest continued{0, 3000, 1, {0, 5, 6, 8, 9, 10}};
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Route(Routing::kRoundRobin, a, i, 0, 3), i % 3);
    EXPECT_EQ(Route(Routing::kPrefix, a, i, 1, 3), Route(Routing::kPrefix, continued, 99, 1, 3));
    EXPECT_EQ(Route(Routing::kRandom, a, i, 1, 3), Route(Routing::kRandom, continued, i, 1, 3));
  }
  std::vector<int> random(4), prefix(4);
  for (uint64_t i = 0; i < 4000; ++i) {
    ++random[Route(Routing::kRandom, a, i, 0, 4)];
    ++prefix[Route(Routing::kPrefix, {0, 1024, 1, {0, i}}, 0, 0, 4)];
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(random[i], 1000, 150);
    EXPECT_NEAR(prefix[i], 1000, 150);
  }
  for (const char* name : {"random", "round-robin", "prefix"}) {
    ASSERT_TRUE(ParseRouting(name));
    EXPECT_EQ(RoutingName(*ParseRouting(name)), name);
  }
  EXPECT_FALSE(ParseRouting("best"));
}

}  // namespace
}  // namespace pando::ctl
