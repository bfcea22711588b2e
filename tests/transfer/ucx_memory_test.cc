// Registered memory (UcxEngine::AddMemory): pages inside, outside and across extents arrive alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/transfer/engine_pair.h"
#include "transfer/memory/page_copy.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando {
namespace {

constexpr size_t kExtent = 4 << 20;

TEST(UcxMemoryTest, PagesInsideOutsideAndAcrossExtents) {
  std::vector<std::byte> from(3 * kExtent), to(3 * kExtent, std::byte{0xee});
  for (size_t at = 0; at < from.size(); ++at) from[at] = static_cast<std::byte>(at * 7 + at / 251);
  const auto pair = MakeUcxPair({});
  for (auto* const memory : {&from, &to}) {
    auto& engine = dynamic_cast<UcxEngine&>(memory == &from ? *pair->owner : *pair->requester);
    for (int again = 0; again < 2; ++again) {  // the second time nothing happens
      engine.AddMemory(std::span(*memory).subspan(0, kExtent));
      engine.AddMemory(std::span(*memory).subspan(kExtent, kExtent));
    }
  }
  // First and last bytes of extents, one across two of them, one half outside, one outside.
  Offer offer{{1, 2}, {}};
  Pull pull{1, pair->owner_address, {1, 2}, pair->Now() + 20'000'000'000, {}};
  for (const size_t bytes : {size_t{4096}, size_t{1} << 20}) {
    for (const size_t start : {size_t{0}, kExtent - bytes, kExtent + bytes, 2 * kExtent - bytes / 2,
                               3 * kExtent - bytes}) {
      const auto page = std::span<const std::byte>(from).subspan(start, bytes);
      pull.pages.push_back({static_cast<uint32_t>(offer.pages.size()), PageChecksum(page),
                            std::span(to).subspan(start, bytes)});
      offer.pages.push_back({page});
    }
  }
  std::vector<std::byte> expected(to.size(), std::byte{0xee});
  for (const PullPage& page : pull.pages) {
    const size_t start = static_cast<size_t>(page.to.data() - to.data());
    std::copy_n(&from[start], page.to.size(), &expected[start]);
  }
  ASSERT_TRUE(pair->owner->Start(std::move(offer)));
  pair->requester->Start(std::move(pull));
  ASSERT_TRUE(pair->Await([&] { return pair->requester_heard.ended.contains(1); }));
  EXPECT_EQ(pair->requester_heard.ended.at(1).status, PullStatus::kOk);
  EXPECT_EQ(pair->requester_heard.Count(1, PageOutcome::kArrived), 10u);
  EXPECT_TRUE(to == expected) << "only the pages were written";
  EXPECT_EQ(pair->owner->counters().registrations_failed, 0u);
  pair->requester.reset();
  pair->owner.reset();
}

}  // namespace
}  // namespace pando
