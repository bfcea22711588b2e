// Every kept input of every fuzz target, in every build: what a fuzzer found once stays fixed.
// FAULTS G2, G3, G4, G5, E4
#include "tests/fuzz/seeds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/script.h"
#include "tests/fuzz/targets.h"
#include "tests/paths.h"

namespace pando::fuzz {
namespace {

std::vector<uint8_t> BytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return {bytes.begin(), bytes.end()};
}

class FuzzSeeds : public testing::TestWithParam<Target> {};

// Whoever finds something stops the process.
TEST_P(FuzzSeeds, FindNothing) {
  const std::filesystem::path folder =
      std::filesystem::path(PANDO_TEST_DATA) / "fuzz" / GetParam().name;
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    GetParam().run(BytesOf(entry.path()));
    ++inputs;
  }
  EXPECT_GT(inputs, 0u);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzSeeds, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(FuzzScript, AnyBytesAreAScriptAndEveryScriptIsBytes) {
  for (const Seed& seed : ScriptSeeds()) {
    const std::vector<uint8_t> bytes(seed.bytes.begin(), seed.bytes.end());
    const bool peers = seed.target == "peer_calls";
    EXPECT_EQ(EncodeScript(DecodeScript(bytes, peers)), bytes) << seed.name;
  }
  const std::vector<uint8_t> noise(1000, 0xee);
  const Script script = DecodeScript(noise, /*peers=*/true);
  EXPECT_EQ(script.operations.size(), (noise.size() - sizeof(Start)) / kOperationBytes);
  EXPECT_EQ(DecodeScript(EncodeScript(script), true), script);
  EXPECT_TRUE(DecodeScript({}, false).operations.empty());
}

TEST(FuzzScript, PrintsItselfAsATest) {
  const Script script = {
      .peers = true,
      .start = {.extents = 2, .extent_pages = 9},
      .operations = {{.kind = Kind::kOpen, .who = 3}, {.kind = Kind::kTick, .time = 255}}};
  EXPECT_EQ(PrintCase(script, "Name"), R"(TEST(FuzzFound, Name) {
  const Script script = {
      .peers = true,
      .start = {.extents = 2, .extent_pages = 9, .share = 0, .collide = 0},
      .operations = {
          {.kind = Kind::kOpen, .who = 3},
          {.kind = Kind::kTick, .time = 255},
      }};
  EXPECT_EQ(RunScript(script), "");
}
)");
}

}  // namespace
}  // namespace pando::fuzz
