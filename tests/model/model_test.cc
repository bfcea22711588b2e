// PrefixCache against the naive map: random sequences, and all short ones. Each once with real keys
// and once with keys that all collide (FAULTS A8). FAULTS C1, C2, C5, C7, C8, B5, G3.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/model/pair.h"

namespace pando::model {
namespace {

#ifdef PANDO_SANITIZED
constexpr uint32_t kRandomSequences = 4'000;  // each costs about twenty times as much
constexpr int kExhaustiveLength = 3;
#else
constexpr uint32_t kRandomSequences = 100'000;  // in each of the two modes
constexpr int kExhaustiveLength = 4;
#endif

class Random {
 public:
  Random(uint32_t seed, bool collide) : random_(seed) {
    options_ = {.block_tokens = 1 + Below(3),
                .shards = 1 + Below(3),
                .extents = 1 + Below(3),
                .extent_pages = 3 + Below(6),
                .collide = collide};
  }

  std::string Run() {
    Pair pair(options_);
    const uint32_t steps = 5 + Below(25);
    for (uint32_t i = 0; i < steps && pair.trouble().empty(); ++i) Step(&pair);
    pair.Close();
    return pair.trouble();
  }

 private:
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  PromptText Text() {
    PromptText text;
    text.tokens.resize(Below(6 * options_.block_tokens));
    for (uint32_t& token : text.tokens) token = Below(8) == 0 ? 0xffffffff : Below(2);
    const uint64_t size = text.tokens.size();
    if (size > 1 && Below(3) == 0) {
      const uint64_t border = 1 + Below(static_cast<uint32_t>(size) - 1);
      text.segments = {{Below(2) ? "" : "corpus", border}, {Below(2) ? "a" : "b", size}};
    }
    const auto blocks = static_cast<uint32_t>(size / options_.block_tokens);
    if (blocks > 0 && Below(4) == 0) text.extras = {{Below(blocks), Below(2) ? "e" : "f"}};
    return text;
  }

  void Step(Pair* pair) {
    switch (Below(12)) {
      case 0:
        return pair->Find(Text(), Below(7));
      case 1:
      case 2:
        return pair->Pin(Text(), Below(7));
      case 3:
        if (pair->pins() > 0) pair->Unpin(Below(static_cast<uint32_t>(pair->pins())));
        return;
      case 4:
      case 5:
        return pair->Reserve(Text(), Below(8), Below(2));
      case 6:
      case 7:
        if (pair->reservations() > 0) {
          const uint32_t r = Below(static_cast<uint32_t>(pair->reservations()));
          const bool clean = Below(4) > 0;
          for (uint32_t s = 0; s < options_.shards && pair->trouble().empty(); ++s) {
            pair->Write(r, s, clean ? 0 : Below(8), Below(4) == 0);
          }
        }
        return;
      case 8:
        if (pair->reservations() > 0) {
          pair->Finish(Below(static_cast<uint32_t>(pair->reservations())));
        }
        return;
      case 9:
        if (pair->pins() > 0) {
          pair->Read(Below(static_cast<uint32_t>(pair->pins())), Below(options_.shards));
        }
        return;
      case 10:
        if (pair->holds() > 0) pair->Release(Below(static_cast<uint32_t>(pair->holds())));
        return;
      default:
        return Cut(pair);
    }
  }

  void Cut(Pair* pair) {
    if (Below(3) == 0) return pair->Evict(Below(4));
    if (pair->holds() > 0 && Below(2) == 0) {
      const uint32_t hold = Below(static_cast<uint32_t>(pair->holds()));
      return pair->DropHeld(hold, Below(static_cast<uint32_t>(pair->pages(hold))));
    }
    const bool of_pin = Below(2) == 0;
    const size_t paths = of_pin ? pair->pins() : pair->reservations();
    if (paths > 0) pair->DropBlock(of_pin, Below(static_cast<uint32_t>(paths)), Below(4));
  }

  std::mt19937 random_;
  Pair::Options options_;
};

class ModelTest : public testing::TestWithParam<bool> {};

TEST_P(ModelTest, RandomSequences) {
  for (uint32_t seed = 0; seed < kRandomSequences; ++seed) {
    const std::string trouble = Random(seed, GetParam()).Run();
    ASSERT_TRUE(trouble.empty()) << "seed " << seed << ": " << trouble;
  }
}

// One of the operations of the exhaustive test, by number; blocks of one token, two tokens.
constexpr int kPrompts = 6;  // 0, 1, 00, 01, 10, 11
PromptText PromptNumber(int i) {
  PromptText text;
  if (i < 2) {
    text.tokens = {static_cast<uint32_t>(i)};
  } else {
    text.tokens = {static_cast<uint32_t>(i - 2) >> 1, static_cast<uint32_t>(i - 2) & 1};
  }
  return text;
}

constexpr int kOperations = 3 * kPrompts + 5;

// False if the operation has nothing to work on: the sequence says nothing new.
bool Operate(Pair* pair, int operation) {
  const int kind = operation / kPrompts;
  const PromptText text = PromptNumber(operation % kPrompts);
  const bool pins = pair->pins() > 0, reservations = pair->reservations() > 0;
  if (kind == 0) {  // store
    pair->Reserve(text, 9, 1);
    if (pair->reservations() == 0) return true;
    pair->Write(pair->reservations() - 1, 0, 0, false);
    if (pair->trouble().empty()) pair->Finish(pair->reservations() - 1);
    return true;
  }
  if (kind == 1) pair->Reserve(text, 9, 2);
  if (kind == 2) pair->Pin(text, 9);
  if (kind < 3) return true;
  switch (operation - 3 * kPrompts) {
    case 0:
      if (pins) pair->Unpin(0);
      return pins;
    case 1:
      if (pins) pair->DropBlock(true, 0, 0);
      return pins;
    case 2:
      if (reservations) pair->Write(0, 0, 2, true);
      return reservations;
    case 3:
      if (reservations) pair->Finish(0);
      return reservations;
    default:
      pair->Evict(1);
      return true;
  }
}

// The two tokens' names mean nothing, so of two sequences that differ only in them one says it all.
bool BeginsWithTheOtherToken(int operation) {
  return operation < 3 * kPrompts && PromptNumber(operation % kPrompts).tokens[0] == 1;
}

// Sequences are counted up, the last operation first. What a sequence begins with in common with
// the one before was compared then, step by step, and comes out the same: it is only repeated.
TEST_P(ModelTest, AllShortSequences) {
  std::vector<int> operations(kExhaustiveLength, 0);
  size_t common = 0;
  while (true) {
    Pair pair(
        {.block_tokens = 1, .shards = 1, .extents = 1, .extent_pages = 3, .collide = GetParam()});
    size_t last = 0;  // the operation that is counted up next
    bool useful = true;
    for (size_t i = 0; i < operations.size() && pair.trouble().empty() && useful; ++i) {
      last = i;
      pair.set_comparing(i >= common);
      useful = Operate(&pair, operations[i]);
    }
    pair.set_comparing(true);
    if (useful) {
      for (int p = 0; p < kPrompts && pair.trouble().empty(); ++p) pair.Find(PromptNumber(p), 9);
      pair.Close();
    }
    ASSERT_TRUE(pair.trouble().empty()) << pair.trouble();
    std::fill(operations.begin() + static_cast<std::ptrdiff_t>(last) + 1, operations.end(), 0);
    ++operations[last];
    while (operations[0] < kOperations && BeginsWithTheOtherToken(operations[0])) ++operations[0];
    while (operations[last] == kOperations) {
      if (last == 0) return;
      operations[last--] = 0;
      ++operations[last];
      while (operations[0] < kOperations && BeginsWithTheOtherToken(operations[0])) ++operations[0];
    }
    common = last;
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, ModelTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "AllCollide" : "Real"; });

}  // namespace
}  // namespace pando::model
