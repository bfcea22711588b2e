// Speed and memory of the tree: matching, evicting, keys, a whole trace.
#include <malloc.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>

#include "node/runtime/environment.h"
#include "radix/key/block_key.h"
#include "radix/key/xxh3.h"
#include "radix/prefix_cache.h"
#include "tests/bench/figure.h"
#include "tests/model/trace.h"
#include "tests/paths.h"

// ---- A counting allocator: what the index really takes, malloc's own bytes included.

namespace {
// Only while `counting`: to ask malloc for a size touches memory, which would be measured.
bool counting = false;
uint64_t heap_bytes = 0;
constexpr uint64_t kMallocHeader = 8;
}  // namespace

// NOLINTBEGIN: replacing the global operators is what this is for.
void* operator new(size_t size) {
  void* data = std::malloc(size);
  if (data == nullptr) throw std::bad_alloc();
  if (counting) heap_bytes += malloc_usable_size(data) + kMallocHeader;
  return data;
}
void* operator new[](size_t size) {
  return operator new(size);
}
void* operator new(size_t size, std::align_val_t align) {
  const auto a = static_cast<size_t>(align);
  void* data = std::aligned_alloc(a, (size + a - 1) / a * a);
  if (data == nullptr) throw std::bad_alloc();
  if (counting) heap_bytes += malloc_usable_size(data) + kMallocHeader;
  return data;
}
void* operator new[](size_t size, std::align_val_t align) {
  return operator new(size, align);
}
void operator delete(void* data) noexcept {
  if (counting && data != nullptr) heap_bytes -= malloc_usable_size(data) + kMallocHeader;
  std::free(data);
}
void operator delete[](void* data) noexcept {
  operator delete(data);
}
void operator delete(void* data, size_t) noexcept {
  operator delete(data);
}
void operator delete[](void* data, size_t) noexcept {
  operator delete(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  operator delete(data);
}
void operator delete[](void* data, std::align_val_t) noexcept {
  operator delete(data);
}
void operator delete(void* data, size_t, std::align_val_t) noexcept {
  operator delete(data);
}
void operator delete[](void* data, size_t, std::align_val_t) noexcept {
  operator delete(data);
}
// NOLINTEND

namespace pando::bench {
namespace {

constexpr uint32_t kBlock = 16;

// The thread's processor time: what else runs on the machine does not count.
double Seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string Text(const char* format, double value) {
  char text[96];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// A cache of one space with room for `blocks` blocks.
struct Bench {
  explicit Bench(uint64_t blocks, uint32_t block_tokens = kBlock)
      : cache({.key_secret = "bench", .space_share = 1.0}) {
    constexpr uint64_t kPages = 1u << kPageIndexBits;
    for (uint32_t e = 0; e < (blocks + kPages - 1) / kPages; ++e) cache.AddExtent(ExtentId(e));
    space = *cache.AddSpace({.identity = "bench",
                             .block_tokens = block_tokens,
                             .page_bytes = kPageStrideMin,
                             .shards = 1});
    whole_extents = (blocks + kPages - 1) / kPages * kPages;
  }

  // Stores what of the prompt is not there; returns the blocks that were.
  uint32_t Store(std::span<const uint32_t> tokens) {
    const Prompt prompt{tokens, {}, {}};
    const Match match = cache.Find(space, prompt, BlockCount(UINT32_MAX));
    const std::optional<PathRef> path = cache.Pin(match);
    const Reservation made = cache.Reserve(space, prompt, BlockCount(UINT32_MAX), 1);
    if (made.status == ReserveStatus::kOk) {
      views.clear();
      cache.Hold(made.path, made.from, made.to, ShardId(0), &views);
      checksums.resize(views.size());
      cache.Commit(made.path, made.from, ShardId(0), views, checksums);
      cache.Release(views);
      cache.Finish(made);
    }
    cache.Unpin(*path);
    return match.blocks.value();
  }

  PrefixCache cache;
  SpaceId space;
  uint64_t whole_extents = 0;
  std::vector<PageView> views;
  std::vector<uint64_t> checksums;
};

std::vector<uint32_t> RandomTokens(std::mt19937_64* random, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (uint32_t& token : tokens) token = static_cast<uint32_t>((*random)() % 150'000);
  return tokens;
}

// ---- Match + compare: 1,000 keys, the first half of each shared by ten.

double memcmp_sink = 0;

void MatchAndCompare(Report* report, uint32_t tokens) {
  constexpr uint32_t kKeys = 1000, kSharers = 10;
  std::mt19937_64 random(tokens);
  Bench bench(uint64_t{kKeys} * tokens / kBlock);
  std::vector<std::vector<uint32_t>> keys, stored;
  std::vector<uint32_t> shared;
  for (uint32_t k = 0; k < kKeys; ++k) {
    if (k % kSharers == 0) shared = RandomTokens(&random, tokens / 2);
    std::vector<uint32_t> key = shared;
    const std::vector<uint32_t> own = RandomTokens(&random, tokens / 2);
    key.insert(key.end(), own.begin(), own.end());
    bench.Store(key);
    keys.push_back(key);
    stored.push_back(std::move(key));
  }
  std::vector<uint32_t> order(kKeys);
  std::iota(order.begin(), order.end(), 0u);
  std::vector<double> match_ns, memcmp_ns;
  uint64_t found = 0;
  for (int round = 0; round < 15; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    double start = Seconds();
    for (const uint32_t k : order) {
      found +=
          bench.cache.Find(bench.space, {keys[k], {}, {}}, BlockCount(UINT32_MAX)).blocks.value();
    }
    match_ns.push_back((Seconds() - start) * 1e9 / kKeys);
    start = Seconds();
    for (const uint32_t k : order) {
      memcmp_sink += std::memcmp(keys[k].data(), stored[k - k % kSharers].data(),
                                 tokens / 2 * sizeof(uint32_t)) == 0;
      memcmp_sink += std::memcmp(keys[k].data() + tokens / 2, stored[k].data() + tokens / 2,
                                 tokens / 2 * sizeof(uint32_t)) == 0;
    }
    memcmp_ns.push_back((Seconds() - start) * 1e9 / kKeys);
  }
  if (found != uint64_t{15} * kKeys * (tokens / kBlock)) std::abort();
  const double reference = Median(memcmp_ns);
  report->Add({.name = "radix/match_" + std::to_string(tokens),
               .value = Median(match_ns),
               .unit = "ns",
               .at_most = 1.25 * reference + 300,
               .at_least = {},
               .reference = Text("memcmp of the same bytes, same order: %.0f ns", reference)});
}

// ---- Evict

// Many one-block runs below the root, or runs as long as the trace's, with random ages.
void Fill(Bench* bench, uint32_t runs, uint32_t run_blocks, std::mt19937_64* random) {
  std::vector<std::vector<uint32_t>> prompts;
  for (uint32_t r = 0; r < runs; ++r) {
    std::vector<uint32_t> prompt(run_blocks * kBlock, r);
    for (uint32_t b = 0; b < run_blocks; ++b) prompt[b * kBlock + 1] = b;
    bench->Store(prompt);
    if (prompts.size() < 4'000'000 / run_blocks) prompts.push_back(std::move(prompt));
  }
  std::shuffle(prompts.begin(), prompts.end(), *random);
  for (const std::vector<uint32_t>& prompt : prompts) bench->Store(prompt);  // a use
}

void EvictAll(Report* report, uint32_t runs, uint32_t run_blocks, const std::string& name,
              double goal) {
  std::vector<double> ns;
  for (int round = 0; round < (runs > 100'000 ? 3 : 5); ++round) {
    std::mt19937_64 random(7);
    Bench bench(uint64_t{runs} * run_blocks);
    Fill(&bench, runs, run_blocks, &random);
    const uint64_t blocks = bench.cache.stats(bench.space).blocks;
    uint64_t gone = 0;
    const double start = Seconds();
    while (gone < blocks) gone += bench.cache.Evict(bench.space, BlockCount(64)).value();
    ns.push_back((Seconds() - start) * 1e9 / static_cast<double>(gone));
  }
  report->Add({.name = name,
               .value = Median(ns),
               .unit = "ns/block",
               .at_most = goal,
               .at_least = {},
               .reference = std::to_string(runs) + " runs of " + std::to_string(run_blocks) +
                            " blocks, random ages, destruction included"});
}

// ---- Memory

void Memory(Report* report, uint32_t run_blocks, const std::string& name, double goal) {
  constexpr uint32_t kBlocks = 1'000'000;
  // Whole extents, so that no unused page's entry is charged to the blocks.
  const uint32_t runs = kBlocks / run_blocks;
  counting = true;
  const uint64_t before = heap_bytes;
  auto bench = std::make_unique<Bench>(kBlocks);
  std::vector<uint32_t> prompt(run_blocks * kBlock);
  for (uint32_t r = 0; r < runs; ++r) {
    for (uint32_t i = 0; i < prompt.size(); ++i) prompt[i] = r * 7 + i;
    bench->Store(prompt);
  }
  bench->views = {};
  bench->checksums = {};
  const uint64_t heap = heap_bytes - before;
  counting = false;
  const auto blocks = static_cast<double>(bench->cache.stats(bench->space).blocks);
  const auto claimed = static_cast<double>(bench->cache.memory().value());
  report->Add({.name = name,
               .value = static_cast<double>(heap) / blocks,
               .unit = "B/block",
               .at_most = goal,
               .at_least = {},
               .reference =
                   Text("counted at the allocator; memory() says %.1f B/block", claimed / blocks)});
}

// ---- Keys

void Keys(Report* report) {
  constexpr uint32_t kTokens = 100'000, kBlocks = kTokens / kBlock;
  std::mt19937_64 random(3);
  const std::vector<uint32_t> tokens = RandomTokens(&random, kTokens);
  const KeyChain chain("bench");
  // The same fields as KeyChain::Block writes, encoded beforehand but for the key above.
  constexpr size_t kBytes = 8 + 16 + 8 + kBlock * 4 + 8;
  std::vector<unsigned char> encoded(kBytes * kBlocks);
  for (uint32_t b = 0; b < kBlocks; ++b) {
    unsigned char* at = encoded.data() + b * kBytes;
    const uint32_t header[] = {1, 16, 2, kBlock * 4, 3, 0};
    std::memcpy(at, header, 8);
    std::memcpy(at + 24, header + 2, 8);
    std::memcpy(at + 32, tokens.data() + b * kBlock, kBlock * 4);
    std::memcpy(at + 32 + kBlock * 4, header + 4, 8);
  }
  alignas(64) unsigned char secret[192];
  XXH3_generateSecret(secret, sizeof(secret), "bench", 5);
  std::vector<double> ours, bare;
  BlockKey key, reference;
  for (int round = 0; round < 51; ++round) {
    key = chain.Root("identity", "");
    const BlockKey root = key;
    double start = Seconds();
    key = chain.Blocks(key, {tokens.data(), size_t{kBlocks} * kBlock}, kBlock);
    ours.push_back((Seconds() - start) * 1e6);
    reference = root;
    start = Seconds();
    for (uint32_t b = 0; b < kBlocks; ++b) {
      unsigned char* at = encoded.data() + b * kBytes;
      std::memcpy(at + 8, &reference.low, sizeof(reference.low));
      std::memcpy(at + 16, &reference.high, sizeof(reference.high));
      const XXH128_hash_t hash = XXH3_128bits_withSecret(at, kBytes, secret, sizeof(secret));
      reference = {hash.low64, hash.high64};
    }
    bare.push_back((Seconds() - start) * 1e6);
    if (!(key == reference)) std::abort();
  }
  report->Add(
      {.name = "radix/keys_100k_tokens",
       .value = Median(ours),
       .unit = "us",
       .at_most = 1.1 * Median(bare),
       .at_least = {},
       .reference = Text("bare XXH3-128 chain, input encoded before: %.1f us", Median(bare))});
}

// ---- The whole trace

void Trace(Report* report) {
  constexpr uint32_t kCapacity = 187'520;
  const std::vector<model::TraceRequest> requests =
      model::ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz");
  std::vector<double> rates;
  uint64_t blocks = 0, hits = 0;
  for (int round = 0; round < 3; ++round) {
    Bench bench(kCapacity);
    // Extents are whole: what exceeds the capacity is taken by a prompt that stays pinned.
    const auto spare = static_cast<uint32_t>(bench.whole_extents - kCapacity);
    const std::vector<uint32_t> filler(spare * kBlock, 0xffffffff);
    bench.Store(filler);
    const Match all = bench.cache.Find(bench.space, {filler, {}, {}}, BlockCount(spare));
    const std::optional<PathRef> pinned = bench.cache.Pin(all);
    if (!pinned || pinned->blocks.value() != spare) std::abort();
    double seconds = 0;
    blocks = hits = 0;
    std::vector<uint32_t> tokens;
    for (size_t r = 0; r < requests.size(); ++r) {
      tokens.clear();
      model::AppendTokens(requests[r], r, true, &tokens);
      const double start = Seconds();
      hits += bench.Store(tokens);
      seconds += Seconds() - start;
      blocks += tokens.size() / kBlock;
    }
    rates.push_back(static_cast<double>(blocks) / seconds / 1e6);
  }
  report->Add({.name = "radix/trace_replay",
               .value = Median(rates),
               .unit = "Mblock/s",
               .at_most = {},
               .at_least = 10,
               .reference = Text("conversation trace, 187,520 blocks of 16; hits %.4f",
                                 static_cast<double>(hits) / static_cast<double>(blocks))});
}

// ---- Hot keys in small and large trees

struct Hot {
  double ns = 0;
  uint64_t runs = 0;
};

Hot HotKeys(uint64_t tree_blocks) {
  constexpr uint32_t kHot = 64, kHotBlocks = 64, kColdBlocks = 32;
  std::mt19937_64 random(5);
  Bench bench(tree_blocks + kColdBlocks);
  std::vector<std::vector<uint32_t>> hot;
  for (uint32_t k = 0; k < kHot; ++k) hot.push_back(RandomTokens(&random, kHotBlocks * kBlock));
  for (const std::vector<uint32_t>& key : hot) bench.Store(key);
  for (uint64_t b = kHot * kHotBlocks; b + kColdBlocks <= tree_blocks; b += kColdBlocks) {
    bench.Store(RandomTokens(&random, kColdBlocks * kBlock));
  }
  std::vector<double> ns;
  Hot result;
  for (int round = 0; round < 201; ++round) {
    result.runs = 0;
    const double start = Seconds();
    for (const std::vector<uint32_t>& key : hot) {
      result.runs +=
          bench.cache.Find(bench.space, {key, {}, {}}, BlockCount(UINT32_MAX)).runs_visited;
    }
    ns.push_back((Seconds() - start) * 1e9 / kHot);
  }
  result.ns = Median(ns);
  return result;
}

void HotInLargeTrees(Report* report) {
  const Hot small = HotKeys(10'000), large = HotKeys(10'000'000);
  report->Add({.name = "radix/hot_64_in_10M_blocks",
               .value = large.ns,
               .unit = "ns",
               .at_most = 1.5 * small.ns,
               .at_least = {},
               .reference = Text("the same in 10 k blocks: %.0f ns", small.ns)});
  report->Add({.name = "radix/hot_64_runs_visited",
               .value = static_cast<double>(large.runs),
               .unit = "runs",
               .at_most = static_cast<double>(small.runs),
               .at_least = {},
               .reference = Text("in 10 k blocks: %.0f", static_cast<double>(small.runs))});
}

}  // namespace
}  // namespace pando::bench

// bench_radix [--json FILE] [--only PART]: PART is one of match, evict, trace, keys, memory, hot.
int main(int argc, char** argv) {
  using namespace pando::bench;
  pando::runtime::EnsureEnvironment(argv);  // as the node runs
  Report report(argc, argv);
  std::string only;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--only") only = argv[i + 1];
  }
  const auto wanted = [&only](const char* part) { return only.empty() || only == part; };
  if (wanted("match")) {
    for (const uint32_t tokens : {2048u, 8192u, 32'768u}) MatchAndCompare(&report, tokens);
  }
  if (wanted("evict")) {
    EvictAll(&report, 50'000, 32, "radix/evict_50k_trace_shaped", 300);
    EvictAll(&report, 50'000, 1, "radix/evict_50k_one_block", 300);
    EvictAll(&report, 1'000'000, 8, "radix/evict_1M_trace_shaped", 600);
    EvictAll(&report, 1'000'000, 1, "radix/evict_1M_one_block", 600);
  }
  if (wanted("trace")) Trace(&report);
  if (wanted("keys")) Keys(&report);
  if (wanted("memory")) {
    Memory(&report, 32, "radix/memory_trace_shaped", 160);
    Memory(&report, 1, "radix/memory_one_block", 320);
  }
  if (wanted("hot")) HotInLargeTrees(&report);
  return report.Finish();
}
