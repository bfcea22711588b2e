// The directory of peers' blocks: its memory, updates from a feed's bytes, lookups.
#include <malloc.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "node/core/cluster/advertiser.h"
#include "node/core/cluster/directory.h"
#include "node/core/cluster/feed_reader.h"
#include "node/runtime/environment.h"
#include "pando/v1/peer.pb.h"
#include "tests/bench/figure.h"

namespace pando::bench {
namespace {

constexpr uint32_t kPeers = 8;
constexpr uint32_t kEach = 120'000;  // blocks that all have, and blocks of each peer's own
constexpr uint32_t kKeysPerMessage = 16'384;

// The thread's processor time: what else runs on the machine does not count.
double Seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string Text(const char* format, double a, double b = 0, double c = 0) {
  char text[160];
  std::snprintf(text, sizeof(text), format, a, b, c);
  return text;
}

std::vector<uint64_t> RandomKeys(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> keys(count);
  for (uint64_t& key : keys) key = random();
  return keys;
}

// What each peer holds: the same `common` blocks, then `own` of its own.
std::vector<std::vector<uint64_t>> Holdings(uint32_t common, uint32_t own) {
  const std::vector<uint64_t> shared = RandomKeys(1, common);
  std::vector<std::vector<uint64_t>> all;
  for (uint32_t peer = 0; peer < kPeers; ++peer) {
    std::vector<uint64_t> keys = shared;
    const std::vector<uint64_t> mine = RandomKeys(100 + peer, own);
    keys.insert(keys.end(), mine.begin(), mine.end());
    std::shuffle(keys.begin(), keys.end(), std::mt19937_64(peer));
    all.push_back(std::move(keys));
  }
  return all;
}

// ---- Memory

// What malloc has given out, its own bytes included.
double HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

void Memory(Report* report, const std::string& name, uint32_t common, uint32_t own,
            std::optional<double> goal) {
  const std::vector<std::vector<uint64_t>> holdings = Holdings(common, own);
  const double before = HeapBytes();
  auto directory = std::make_unique<Directory>(7);
  for (size_t from = 0; from < holdings[0].size(); from += kKeysPerMessage) {
    for (uint32_t peer = 0; peer < kPeers; ++peer) {
      const std::span keys(holdings[peer]);
      directory->Add(PeerId(peer),
                     keys.subspan(from, std::min<size_t>(kKeysPerMessage, keys.size() - from)));
    }
  }
  const double heap = HeapBytes() - before;
  const auto held = static_cast<double>(directory->holder_blocks());
  report->Add(
      {.name = name,
       .value = heap / held,
       .unit = "B/holder",
       .at_most = goal,
       .at_least = {},
       .reference = Text("%.2f M unique blocks, %.2f M holder-blocks; memory() says %.1f",
                         static_cast<double>(directory->unique_blocks()) * 1e-6, held * 1e-6,
                         static_cast<double>(directory->memory().value()) / held)});
}

// ---- Updates

struct Update {
  PeerId peer;
  std::string bytes;  // a FeedMessage
};

void Column(std::span<const uint64_t> keys, std::string* bytes) {
  bytes->assign(reinterpret_cast<const char*>(keys.data()), keys.size_bytes());
}

std::string Message(std::span<const uint64_t> removes, std::span<const uint64_t> adds) {
  v1::FeedMessage message;
  message.set_boot_id(1);
  message.set_sequence(1);
  Column(removes, message.mutable_removes());
  Column(adds, message.mutable_adds());
  return message.SerializeAsString();
}

std::vector<uint64_t> Keys(const std::string& column) {
  std::vector<uint64_t> keys(column.size() / sizeof(uint64_t));
  std::memcpy(keys.data(), column.data(), keys.size() * sizeof(uint64_t));
  return keys;
}

// Parses and applies them; returns the block updates a second.
double Apply(const std::vector<Update>& updates, Directory* directory) {
  uint64_t blocks = 0;
  const double start = Seconds();
  for (const Update& update : updates) {
    v1::FeedMessage message;
    if (!message.ParseFromString(update.bytes)) std::abort();
    const std::vector<uint64_t> removes = Keys(message.removes()), adds = Keys(message.adds());
    const Applied removed = directory->Remove(update.peer, removes);
    const Applied added = directory->Add(update.peer, adds);
    if (removed.redundant + added.redundant > 0) std::abort();
    blocks += removes.size() + adds.size();
  }
  return static_cast<double>(blocks) / (Seconds() - start);
}

// The peers' blocks come in turn, from nothing. Then each peer gives up a sixteenth and takes it
// back elsewhere in time, so that blocks, sets of holders and table places come and go.
void Updates(Report* report) {
  const std::vector<std::vector<uint64_t>> holdings = Holdings(kEach, kEach);
  std::vector<Update> fill, churn;
  for (size_t from = 0; from < holdings[0].size(); from += kKeysPerMessage) {
    for (uint32_t peer = 0; peer < kPeers; ++peer) {
      const std::span keys(holdings[peer]);
      const size_t count = std::min<size_t>(kKeysPerMessage, keys.size() - from);
      fill.push_back({PeerId(peer), Message({}, keys.subspan(from, count))});
    }
  }
  const size_t slice = holdings[0].size() / 16;
  for (size_t turn = 0; turn <= 16; ++turn) {
    for (uint32_t peer = 0; peer < kPeers; ++peer) {
      const std::span keys(holdings[peer]);
      const std::span removes = turn < 16 ? keys.subspan(turn * slice, slice) : keys.first(0);
      const std::span adds = turn > 0 ? keys.subspan((turn - 1) * slice, slice) : keys.first(0);
      churn.push_back({PeerId(peer), Message(removes, adds)});
    }
  }
  std::vector<double> filling, churning;
  for (int round = 0; round < 9; ++round) {
    Directory directory(round);
    filling.push_back(Apply(fill, &directory) * 1e-6);
    for (int again = 0; again < 2; ++again) churning.push_back(Apply(churn, &directory) * 1e-6);
  }
  report->Add({.name = "directory/updates_churn",
               .value = Median(churning),
               .unit = "M/s",
               .at_most = {},
               .at_least = 15,
               .reference = "a full directory; as many removes as adds, from protobuf bytes"});
  report->Add({.name = "directory/updates_fill",
               .value = Median(filling),
               .unit = "M/s",
               .at_most = {},
               .at_least = 15,
               .reference = "from nothing to 1.08 M unique blocks, from protobuf bytes"});
}

// ---- Lookup

// 2,100 chains of 512 blocks. `depth(peer)` is how deep a peer has one.
void Lookups(Report* report, const std::string& name,
             const std::function<uint32_t(uint32_t)>& depth, const std::string& what) {
  constexpr uint32_t kChains = 2100, kBlocks = 512, kTogether = 8;
  Directory directory(3);
  const std::vector<uint64_t> keys = RandomKeys(3, size_t{kChains} * kBlocks);
  const auto chain = [&](size_t c) { return std::span(keys).subspan(c * kBlocks, kBlocks); };
  for (uint32_t peer = 0; peer < kPeers; ++peer) {
    for (size_t c = 0; c < kChains; ++c) directory.Add(PeerId(peer), chain(c).first(depth(peer)));
  }
  std::vector<uint32_t> order(kChains);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(5);
  std::vector<double> micros;
  std::vector<PeerDepth> found;
  std::vector<uint64_t> hot(size_t{kTogether} * kBlocks);
  uint64_t deepest = 0;
  for (int round = 0; round < 20; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t at = 0; at + kTogether <= kChains; at += kTogether) {
      // A caller has just made the keys; the directory's own memory is as cold as it is.
      for (size_t i = 0; i < kTogether; ++i) {
        std::ranges::copy(chain(order[at + i]), hot.begin() + i * kBlocks);
      }
      const double start = Seconds();
      for (size_t i = 0; i < kTogether; ++i) {
        directory.Lookup(std::span(hot).subspan(i * kBlocks, kBlocks), 0, &found);
        deepest += found.empty() ? 0 : found[0].depth;
      }
      micros.push_back((Seconds() - start) * 1e6 / kTogether);
    }
  }
  report->Add(
      {.name = name,
       .value = Median(micros),
       .unit = "us",
       .at_most = 3,
       .at_least = {},
       .reference = what + Text(", %.2f M unique blocks; deepest on average %.0f",
                                static_cast<double>(directory.unique_blocks()) * 1e-6,
                                static_cast<double>(deepest) / (20.0 * (kChains / 8 * 8)))});
}

void AllLookups(Report* report) {
  std::mt19937_64 random(9);
  Lookups(
      report, "directory/lookup_512", [](uint32_t peer) { return peer < 4 ? 512u : 256u; },
      "four of 8 peers have all of the chain, four its first half");
  Lookups(
      report, "directory/lookup_512_ragged",
      [&](uint32_t) { return static_cast<uint32_t>(random() % 513); },
      "8 peers, each as deep as chance has it");
}

// ---- Feed

std::string Encode(const FeedPiece& piece) {
  v1::FeedMessage message;
  message.set_boot_id(piece.boot.value());
  message.set_sequence(piece.sequence);
  message.set_part(piece.part);
  message.set_last(piece.last);
  Column(piece.removes, message.mutable_removes());
  Column(piece.adds, message.mutable_adds());
  message.set_digest(piece.held.digest);
  message.set_blocks(piece.held.keys);
  return message.SerializeAsString();
}

FeedPiece Decode(const std::string& bytes) {
  v1::FeedMessage message;
  if (!message.ParseFromString(bytes)) std::abort();
  FeedPiece piece;
  piece.boot = BootId(message.boot_id());
  piece.sequence = message.sequence();
  piece.part = message.part();
  piece.last = message.last();
  piece.removes = Keys(message.removes());
  piece.adds = Keys(message.adds());
  piece.held = {message.digest(), message.blocks()};
  return piece;
}

// Ten flushes a second; in each 5,000 blocks come, as chains of 50, and 5,000 go.
void Feed(Report* report) {
  constexpr uint32_t kFlushes = 100, kPerSecond = 10, kChains = 100, kBlocks = 50, kAge = 40;
  Advertiser advertiser({.boot = BootId(1), .budget = Bytes(64 << 20)});
  const SubscriberId id = advertiser.Subscribe();
  Directory held(1), prefilling(2);
  FeedReader reader({.peer = PeerId(1)}, &held, &prefilling);
  const std::vector<uint64_t> keys = RandomKeys(11, size_t{kFlushes + kAge} * kChains * kBlocks);
  double owner = 0, requester = 0;
  uint64_t bytes = 0, changes = 0;
  for (uint32_t flush = 0; flush < kFlushes + kAge; ++flush) {
    const Nanos now = Nanos{flush} * 1'000'000'000 / kPerSecond;
    const auto chain = [&](uint32_t of, uint32_t c) {
      return std::span(keys).subspan((size_t{of} * kChains + c) * kBlocks, kBlocks);
    };
    const double start = Seconds();
    for (uint32_t c = 0; c < kChains; ++c) {
      advertiser.Appeared({}, chain(flush, c), Tier::kHost, now);
      if (flush >= kAge) advertiser.Vanished(chain(flush - kAge, c), Tier::kHost);
    }
    advertiser.Flush(now);
    std::vector<std::string> messages;
    uint64_t told = 0;
    while (const auto piece = advertiser.Take(id)) {
      messages.push_back(Encode(*piece));
      told += piece->keys();
    }
    const double made = Seconds();
    for (const std::string& message : messages) {
      if (reader.Apply(Decode(message)) != FeedVerdict::kApplied) std::abort();
    }
    const double applied = Seconds();
    if (flush < kAge) continue;
    owner += made - start;
    requester += applied - made;
    changes += told;
    for (const std::string& message : messages) bytes += message.size();
  }
  constexpr double kSeconds = static_cast<double>(kFlushes) / kPerSecond;
  const std::string rate =
      Text("%.0f block changes a second", static_cast<double>(changes) / kSeconds);
  report->Add({.name = "directory/feed_bytes",
               .value = static_cast<double>(bytes) / kSeconds * 1e-3,
               .unit = "kB/s",
               .at_most = {},
               .at_least = {},
               .reference = rate + ", to each subscriber, ten messages a second"});
  report->Add({.name = "directory/feed_cpu_owner",
               .value = owner / kSeconds * 100,
               .unit = "% core",
               .at_most = {},
               .at_least = {},
               .reference = rate + ": choose, flush, encode once for all subscribers"});
  report->Add({.name = "directory/feed_cpu_reader",
               .value = requester / kSeconds * 100,
               .unit = "% core",
               .at_most = {},
               .at_least = {},
               .reference = rate + " of one peer: parse, check, apply"});
}

int Main(int argc, char** argv) {
  runtime::EnsureEnvironment(argv);
  Report report(argc, argv);
  Memory(&report, "directory/memory", kEach, kEach, 20);
  Memory(&report, "directory/memory_unshared", 0, 2 * kEach, {});
  Updates(&report);
  AllLookups(&report);
  Feed(&report);
  return report.Finish();
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) {
  return pando::bench::Main(argc, argv);
}
