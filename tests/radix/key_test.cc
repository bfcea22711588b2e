#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "radix/key/block_key.h"
#include "tests/paths.h"

namespace pando {
namespace {

std::string Hex(BlockKey key) {
  char text[40];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(key.high),
                static_cast<unsigned long long>(key.low));
  return text;
}

// A chain that uses every kind of step, short and long input, both ends of the token range.
std::vector<std::string> Chain(const KeyChain& keys) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& what, BlockKey key) {
    lines.push_back(what + " " + Hex(key));
    return key;
  };
  std::vector<uint32_t> tokens(16);
  for (uint32_t i = 0; i < 16; ++i) tokens[i] = i * 1000;
  BlockKey key = add("root", keys.Root("model=m\nblock=16\n", ""));
  key = add("block", keys.Block(key, tokens, ""));
  key = add("scope", keys.Scope(key, "tenant/a"));
  key = add("extra", keys.Block(key, tokens, "image:0123456789abcdef"));
  tokens.assign(16, 0xffffffff);
  key = add("limits", keys.Block(key, tokens, ""));
  tokens.assign(1024, 7);
  key = add("long", keys.Block(key, tokens, std::string(4096, 'x')));
  add("one", keys.Block(key, std::vector<uint32_t>{1}, ""));
  add("root_scope", keys.Root("model=m\nblock=16\n", "tenant/a"));
  return lines;
}

// FAULTS A7: the formula is a part of the protocol.
TEST(KeyTest, GoldenVectors) {
  std::ifstream file(PANDO_TEST_DATA "/golden_keys.txt");
  ASSERT_TRUE(file.good());
  std::vector<std::string> golden;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') golden.push_back(line);
  }
  std::vector<std::string> lines;
  for (const std::string& line : Chain(KeyChain(""))) lines.push_back("default " + line);
  for (const std::string& line : Chain(KeyChain("secret"))) lines.push_back("secret " + line);
  EXPECT_EQ(lines, golden);
}

// FAULTS A3: for every pair of neighbouring fields, moving the border between them changes the key.
TEST(KeyTest, ShiftedBordersTellApart) {
  const KeyChain keys("");
  const std::string text = "org_12345aaaabbbbccccdddd";
  std::set<std::string> seen;
  for (size_t i = 0; i <= text.size(); ++i) {
    EXPECT_TRUE(seen.insert(Hex(keys.Root(text.substr(0, i), text.substr(i)))).second) << i;
  }
  const BlockKey above{1, 2};
  std::vector<uint32_t> tokens(8);
  std::memcpy(tokens.data(), "aaaaaaaabbbbbbbbccccccccdddddddd", 32);
  const std::string bytes(reinterpret_cast<const char*>(tokens.data()), 32);
  for (size_t i = 0; i <= 8; ++i) {
    const std::string extra = bytes.substr(4 * i);
    EXPECT_TRUE(seen.insert(Hex(keys.Block(above, {tokens.data(), i}, extra))).second) << i;
  }
  // A scope, an extra, tokens and the key above with the same bytes are four different things.
  EXPECT_TRUE(seen.insert(Hex(keys.Scope(above, bytes))).second);
  EXPECT_TRUE(seen.insert(Hex(keys.Scope({2, 1}, bytes))).second);
  const BlockKey twice = keys.Scope(keys.Scope(above, "a"), "b");
  EXPECT_TRUE(seen.insert(Hex(twice)).second);
  EXPECT_TRUE(seen.insert(Hex(keys.Scope(above, "ab"))).second);
  EXPECT_TRUE(seen.insert(Hex(keys.Scope(keys.Scope(above, "b"), "a"))).second);
}

// Around the border between the buffer and the streaming hash every length has its own key, and the
// secret counts in all of them.
TEST(KeyTest, AllLengths) {
  const KeyChain keys(""), other("x");
  std::set<std::string> seen;
  std::vector<uint32_t> tokens(160, 5);
  for (size_t n = 0; n <= tokens.size(); ++n) {
    for (const std::string extra : {"", "e"}) {
      const std::span<const uint32_t> some(tokens.data(), n);
      EXPECT_TRUE(seen.insert(Hex(keys.Block({}, some, extra))).second) << n;
      EXPECT_TRUE(seen.insert(Hex(other.Block({}, some, extra))).second) << n;
    }
  }
}

}  // namespace
}  // namespace pando
