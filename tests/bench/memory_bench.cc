// Load and store of pages, one core: GatherToPage and ScatterFromPage beside the slower of a
// non-temporal copy and XXH3, over the same pages in the same order.
//
// Pages and pieces are scattered over buffers that are far larger than any cache; each repetition
// measures all three in turn, and the figure is the median of the ratios.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/figure.h"
#include "transfer/memory/page_copy.h"
#include "transfer/memory/stream_copy.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace pando::bench {
namespace {

constexpr size_t kBufferBytes = 512u << 20;
constexpr size_t kBytesPerRun = 128u << 20;
constexpr int kRepetitions = 15;

std::span<std::byte> Populated(int fill) {
  void* start =
      mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    std::perror("memory for the benchmark");
    std::exit(1);
  }
  std::memset(start, fill, kBufferBytes);
  return {static_cast<std::byte*>(start), kBufferBytes};
}

// `count` places of `size` bytes each, in random order, anywhere in the buffer.
std::vector<std::span<std::byte>> Scatter(std::span<std::byte> buffer, size_t size, size_t count,
                                          std::mt19937& random) {
  std::vector<size_t> slots(buffer.size() / size);
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), random);
  std::vector<std::span<std::byte>> places;
  for (size_t i = 0; i < count; ++i) places.push_back(buffer.subspan(slots[i] * size, size));
  return places;
}

struct Setting {
  size_t page_bytes;
  size_t pieces;
  std::vector<std::span<std::byte>> pages;
  std::vector<std::vector<std::span<std::byte>>> scattered;              // of each page
  std::vector<std::vector<std::span<const std::byte>>> scattered_const;  // the same
};

Setting Prepare(std::span<std::byte> page_side, std::span<std::byte> piece_side, size_t page_bytes,
                size_t pieces) {
  std::mt19937 random(7);
  Setting setting{page_bytes, pieces, {}, {}, {}};
  const size_t count = kBytesPerRun / page_bytes;
  setting.pages = Scatter(page_side, page_bytes, count, random);
  const auto all = Scatter(piece_side, page_bytes / pieces, count * pieces, random);
  for (size_t i = 0; i < count; ++i) {
    const auto first = all.begin() + static_cast<ptrdiff_t>(i * pieces);
    setting.scattered.emplace_back(first, first + static_cast<ptrdiff_t>(pieces));
    setting.scattered_const.emplace_back(first, first + static_cast<ptrdiff_t>(pieces));
  }
  return setting;
}

double GigabytesPerSecond(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(kBytesPerRun) / took.count() / 1e9;
}

volatile uint64_t sink;

void HashPages(const Setting& setting) {
  uint64_t sum = 0;
  for (const auto& page : setting.pages) sum += XXH3_64bits(page.data(), page.size());
  sink = sum;
}

void HashPieces(const Setting& setting) {
  uint64_t sum = 0;
  for (const auto& pieces : setting.scattered) {
    for (const auto& piece : pieces) sum += XXH3_64bits(piece.data(), piece.size());
  }
  sink = sum;
}

void CopyOnly(const Setting& setting, bool store) {
  const StreamCopyFn stream = BestStreamCopy();
  for (size_t i = 0; i < setting.pages.size(); ++i) {
    std::byte* page = setting.pages[i].data();
    for (const auto& piece : setting.scattered[i]) {
      std::byte* to = store ? page : piece.data();
      stream(to, store ? piece.data() : page, piece.size());
      page += piece.size();
    }
    StreamFence();
  }
}

void CopyChecked(const Setting& setting, bool store) {
  uint64_t sum = 0;
  for (size_t i = 0; i < setting.pages.size(); ++i) {
    sum += (store ? GatherToPage(setting.scattered_const[i], setting.pages[i])
                  : ScatterFromPage(setting.pages[i], setting.scattered[i]))
               .value_or(0);
  }
  sink = sum;
}

void Measure(const Setting& setting, bool store, Report* report) {
  std::vector<double> rates;
  std::vector<double> copies;
  std::vector<double> hashes;
  std::vector<double> ratios;
  for (int i = 0; i < kRepetitions; ++i) {
    copies.push_back(GigabytesPerSecond([&] { CopyOnly(setting, store); }));
    rates.push_back(GigabytesPerSecond([&] { CopyChecked(setting, store); }));
    hashes.push_back(GigabytesPerSecond([&] { store ? HashPieces(setting) : HashPages(setting); }));
    ratios.push_back(rates.back() / std::min(copies.back(), hashes.back()));
  }
  char reference[160];
  std::snprintf(reference, sizeof(reference),
                "%.2f GB/s; non-temporal copy %.2f, XXH3 of what is read %.2f", Median(rates),
                Median(copies), Median(hashes));
  report->Add({.name = std::string("memory/") + (store ? "store" : "load") + "/" +
                       std::to_string(setting.page_bytes >> 10) + "KiB/" +
                       std::to_string(setting.pieces) + (setting.pieces == 1 ? "piece" : "pieces"),
               .value = Median(ratios),
               .unit = "ratio",
               .at_most = std::nullopt,
               .at_least = 0.80,
               .reference = reference});
}

void PinToThisCore() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(sched_getcpu(), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

int Main(int argc, char** argv) {
  PinToThisCore();
  Report report(argc, argv);
  const std::span<std::byte> page_side = Populated(1);
  const std::span<std::byte> piece_side = Populated(2);
  for (const size_t page_bytes : {64u << 10, 256u << 10, 1u << 20, 2u << 20}) {
    for (const size_t pieces : {1u, 64u}) {
      const Setting setting = Prepare(page_side, piece_side, page_bytes, pieces);
      for (const bool store : {false, true}) Measure(setting, store, &report);
    }
  }
  return report.Finish();
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) {
  return pando::bench::Main(argc, argv);
}
