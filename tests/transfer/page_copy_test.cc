#include "transfer/memory/page_copy.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace pando {
namespace {

using Piece = std::span<std::byte>;
using ConstPiece = std::span<const std::byte>;

std::vector<std::byte> Pattern(size_t size, uint32_t seed = 1) {
  std::vector<std::byte> bytes(size);
  uint32_t x = seed * 2654435761u + 12345;
  for (std::byte& byte : bytes) {
    x = x * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(x >> 24);
  }
  return bytes;
}

// Bytes that begin at a line, as pages do; all 0xee.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size) : room_(size + 64, std::byte{0xee}) {
    const size_t skip = -reinterpret_cast<uintptr_t>(room_.data()) % 64;
    bytes_ = Piece(room_).subspan(skip, size);
  }
  Piece bytes() const { return bytes_; }

 private:
  std::vector<std::byte> room_;
  Piece bytes_;
};

// The formula in plain words: hash each 4 KiB, write the values one after the other, hash those.
uint64_t PlainChecksum(ConstPiece page) {
  std::vector<unsigned char> values;
  for (size_t at = 0; at < page.size(); at += 4096) {
    const uint64_t hash = XXH3_64bits(page.data() + at, std::min<size_t>(4096, page.size() - at));
    for (int i = 0; i < 8; ++i) values.push_back(static_cast<unsigned char>(hash >> (8 * i)));
  }
  return XXH3_64bits(values.data(), values.size());
}

// Cuts `bytes` into pieces of the given sizes, the last one taking the rest.
template <class Byte>
std::vector<std::span<Byte>> Cut(std::span<Byte> bytes, const std::vector<size_t>& sizes) {
  std::vector<std::span<Byte>> pieces;
  size_t at = 0;
  for (const size_t size : sizes) {
    const size_t taken = std::min(size, bytes.size() - at);
    pieces.push_back(bytes.subspan(at, taken));
    at += taken;
  }
  pieces.push_back(bytes.subspan(at));
  return pieces;
}

const size_t kSizes[] = {1,        2,    63,   64,    65,    255,   4095,      4096,
                         4097,     8191, 8192, 12288, 65536, 65537, 1u << 20u, (8u << 20u) - 1,
                         8u << 20u};

// The formula is frozen: peers and disks of other builds depend on these values.
TEST(PageChecksum, GoldenValues) {
  std::vector<std::byte> counting(10000);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<std::byte>(i);
  const auto sum = [&](size_t size) { return PageChecksum(ConstPiece(counting).first(size)); };
  EXPECT_EQ(PageChecksum({}), 0x2d06800538d394c2u);  // XXH3-64 of nothing
  EXPECT_EQ(sum(1), 0x113425e2d3c1afc3u);
  EXPECT_EQ(sum(4096), 0x5238877534b0523au);
  EXPECT_EQ(sum(4097), 0x98fc95296b74a59fu);
  EXPECT_EQ(sum(10000), 0xe999ac9e687220b8u);
}

// FAULTS G1
TEST(PageChecksum, EqualsThePlainFormulaAtAllSizes) {
  for (const size_t size : kSizes) {
    const auto page = Pattern(size);
    EXPECT_EQ(PageChecksum(page), PlainChecksum(page)) << size;
  }
}

TEST(PageChecksum, SeesOneFlippedBitAnywhere) {
  auto page = Pattern(9000);
  const uint64_t before = PageChecksum(page);
  for (size_t at = 0; at < page.size(); at += 97) {
    page[at] ^= std::byte{0x10};
    EXPECT_NE(PageChecksum(page), before) << at;
    page[at] ^= std::byte{0x10};
  }
}

// FAULTS G1
TEST(PageCopy, OnePieceOfEverySizeThereAndBack) {
  for (const size_t size : kSizes) {
    const auto source = Pattern(size);
    std::vector<std::byte> page(size);
    const ConstPiece piece(source);
    const auto stored = GatherToPage(std::span(&piece, 1), page);
    ASSERT_TRUE(stored.has_value()) << size;
    EXPECT_EQ(page, source);
    EXPECT_EQ(*stored, PlainChecksum(source));
    std::vector<std::byte> back(size);
    const Piece target(back);
    EXPECT_EQ(ScatterFromPage(page, std::span(&target, 1)), stored);
    EXPECT_EQ(back, source) << size;
  }
}

// Pieces of odd sizes at odd addresses, that straddle the page's chunks, empty ones among them.
TEST(PageCopy, ScatteredPiecesThereAndBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const size_t size = 1 + random() % 40000;
    std::vector<size_t> cuts(random() % 70);
    for (size_t& cut : cuts) cut = random() % (random() % 2 ? 100 : 6000);
    const auto source = Pattern(size + 64, static_cast<uint32_t>(round));
    std::vector<std::byte> page(size + 64, std::byte{0xee});
    std::vector<std::byte> back(size + 64, std::byte{0xdd});
    const ConstPiece from = ConstPiece(source).subspan(random() % 64, size);
    const size_t page_at = random() % 64;
    const Piece to = Piece(page).subspan(page_at, size);

    const auto stored = GatherToPage(Cut(from, cuts), to);
    ASSERT_EQ(stored, PlainChecksum(from));
    ASSERT_TRUE(std::ranges::equal(to, from));
    for (size_t i = 0; i < page.size(); ++i) {
      const bool inside = i >= page_at && i < page_at + size;
      ASSERT_TRUE(inside || page[i] == std::byte{0xee}) << i;
    }
    std::shuffle(cuts.begin(), cuts.end(), random);
    ASSERT_EQ(ScatterFromPage(to, Cut(Piece(back).subspan(5, size), cuts)), stored);
    ASSERT_TRUE(std::ranges::equal(Piece(back).subspan(5, size), from));
  }
}

// The same where all is whole lines at aligned addresses, which goes another way.
TEST(PageCopy, WholeLinesThereAndBack) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const size_t size = 64 * (1 + random() % 700) + (round % 3 == 0 ? random() % 64 : 0);
    std::vector<size_t> cuts(random() % 20);
    for (size_t& cut : cuts) cut = 64 * (random() % 80);
    const auto source = Pattern(size, static_cast<uint32_t>(round));
    AlignedBytes page(size + 64);
    AlignedBytes back(size + 64);
    const Piece to = page.bytes().first(size);
    const auto stored = GatherToPage(Cut(ConstPiece(source), cuts), to);
    ASSERT_EQ(stored, PlainChecksum(source)) << size;
    ASSERT_TRUE(std::ranges::equal(to, source));
    EXPECT_EQ(page.bytes()[size], std::byte{0xee});
    ASSERT_EQ(ScatterFromPage(to, Cut(back.bytes().first(size), cuts)), stored);
    ASSERT_TRUE(std::ranges::equal(back.bytes().first(size), source));
    EXPECT_EQ(back.bytes()[size], std::byte{0xee});
  }
}

TEST(PageCopy, RefusesPiecesThatDoNotFillThePage) {
  const auto source = Pattern(5000);
  std::vector<std::byte> page(5000, std::byte{0xee});
  const auto untouched = page;
  for (const size_t wrong : {0u, 1u, 4999u}) {
    const ConstPiece piece = ConstPiece(source).first(wrong);
    EXPECT_FALSE(GatherToPage(std::span(&piece, 1), page).has_value()) << wrong;
  }
  const ConstPiece twice[] = {source, source};
  EXPECT_FALSE(GatherToPage(twice, page).has_value());
  EXPECT_EQ(page, untouched);
  auto target = Pattern(4000);
  const auto target_before = target;
  const Piece piece(target);
  EXPECT_FALSE(ScatterFromPage(page, std::span(&piece, 1)).has_value());
  EXPECT_EQ(target, target_before);
}

TEST(PageCopy, RefusesMoreThanAPage) {
  const std::vector<std::byte> source((8u << 20) + 1);
  std::vector<std::byte> page(source.size());
  const ConstPiece piece(source);
  EXPECT_FALSE(GatherToPage(std::span(&piece, 1), page).has_value());
}

TEST(PageCopy, StopsBeforeTheFirstChunk) {
  const auto source = Pattern(20000);
  std::vector<std::byte> page(20000, std::byte{0xee});
  CopyControl control;
  control.stop = true;
  const ConstPiece piece(source);
  EXPECT_FALSE(GatherToPage(std::span(&piece, 1), page, &control).has_value());
  EXPECT_EQ(page, std::vector<std::byte>(20000, std::byte{0xee}));
}

// A copy that is told to stop while it runs ends without a checksum. The copy runs over and over,
// so the stop comes at some chunk of some round.
TEST(PageCopy, StopsInMidCopy) {
  const auto source = Pattern(8u << 20);
  std::vector<std::byte> page(source.size());
  CopyControl control;
  std::atomic<bool> begun = false;
  std::thread copier([&] {
    const ConstPiece piece(source);
    while (GatherToPage(std::span(&piece, 1), page, &control)) begun = true, begun.notify_one();
  });
  begun.wait(false);
  control.stop = true;
  copier.join();
}

// FAULTS B1: somebody keeps writing to the source; the checksum is of what was stored all the same.
TEST(PageCopy, ChecksumIsOfTheStoredBytesWhileTheSourceChanges) {
  std::vector<std::byte> source = Pattern(256u << 10);
  const AlignedBytes aligned(source.size() + 1);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    // Bytes that race are written through atomics; the copy's reads race with them on purpose.
    for (uint8_t value = 0; !done; ++value) {
      for (size_t i = 0; i < source.size(); i += 61) {
        std::atomic_ref<uint8_t>(reinterpret_cast<uint8_t&>(source[i])).store(value);
      }
    }
  });
  const ConstPiece piece(source);
  for (int i = 0; i < 200; ++i) {
    const Piece page = aligned.bytes().subspan(i % 2, source.size());  // both ways
    const auto stored = GatherToPage(std::span(&piece, 1), page);
    EXPECT_EQ(stored, PageChecksum(page));
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace pando
