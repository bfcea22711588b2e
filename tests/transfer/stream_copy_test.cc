#include "transfer/memory/stream_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace pando {
namespace {

// Every kind copies exactly `size` bytes, whatever the alignments: what lies around stays.
TEST(StreamCopy, AnySizeAndAlignment) {
  constexpr size_t kRoom = 2048;
  std::vector<std::byte> from(kRoom);
  for (size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  int usable = 0;
  for (size_t kind = 0; kind < internal::kStreamCopyKinds; ++kind) {
    const internal::StreamCopyKind& copy = internal::StreamCopyKinds()[kind];
    if (!copy.usable) continue;
    ++usable;
    for (const size_t size :
         {0, 1, 31, 63, 64, 65, 127, 255, 256, 257, 319, 320, 511, 1024, 1500}) {
      for (size_t to_at = 0; to_at < 70; to_at += 3) {
        for (const size_t from_at : {0, 1, 8, 33, 64}) {
          std::vector<std::byte> to(kRoom, std::byte{0xee});
          copy.copy(to.data() + to_at, from.data() + from_at, size);
          StreamFence();
          ASSERT_EQ(std::memcmp(to.data() + to_at, from.data() + from_at, size), 0)
              << copy.name << " size " << size << " to " << to_at << " from " << from_at;
          for (size_t i = 0; i < kRoom; ++i) {
            if (i >= to_at && i < to_at + size) continue;
            ASSERT_EQ(to[i], std::byte{0xee}) << copy.name << " wrote outside, at " << i;
          }
        }
      }
    }
  }
  EXPECT_GE(usable, 1);
}

}  // namespace
}  // namespace pando
