// Pulls of 256 scattered pages between two processes, each pinned to a core: two nodes, from an
// engine's question to its answer, and UcxEngine alone, beside the shortest UCX program that moves
// and hashes as many pages (the better of eager and rendezvous), and beside raw TCP that verifies
// nothing. All in turn, each lot of new pages; medians.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/bench/figure.h"
#include "tests/bench/pull_bench_nodes.h"
#include "tests/bench/pull_bench_peer.h"
#include "transfer/memory/unique_fd.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando::bench {
namespace {

constexpr int kRepetitions = 11;

int ServeEngine() {
  const std::span<std::byte> pool = MakePool(true);
  auto engine = UcxEngine::Create({.limits = {.pages_in_flight = kInFlight}});
  if (!engine.ok()) return 1;
  (*engine)->AddMemory(pool);
  Say((*engine)->address());
  unsigned seed = 0;
  for (size_t page_bytes = 0; NextLot(&seed, &page_bytes);) {
    (*engine)->Revoke({1, seed - 1});
    Offer offer{{1, seed}, {}};
    for (const uint32_t slot : Slots(seed, page_bytes)) {
      offer.pages.push_back({pool.subspan(slot * page_bytes, page_bytes)});
    }
    if (!(*engine)->Start(std::move(offer))) return 1;
    Say("ok");
  }
  return 0;
}

class Requester {
 public:
  explicit Requester(std::span<std::byte> pool) : pool_(pool) {
    auto engine =
        UcxEngine::Create({.limits = {.pages_in_flight = kInFlight}, .notify = [fd = told_.get()] {
                             const uint64_t one = 1;
                             if (write(fd, &one, sizeof(one)) < 0) std::abort();
                           }});
    if (!engine.ok()) std::abort();
    engine_ = std::move(*engine);
    engine_->AddMemory(pool);
  }

  double Pull(const std::string& address, unsigned seed, const Lot& lot) {
    pando::Pull pull{++id_, address, {1, seed}, static_cast<Nanos>((Seconds() + 60) * 1e9), {}};
    for (uint32_t i = 0; i < kPulled; ++i) {
      pull.pages.push_back(
          {i, lot.checksums[i], pool_.subspan(lot.to[i] * lot.page_bytes, lot.page_bytes)});
    }
    const double start = Seconds();
    engine_->Start(std::move(pull));
    for (;;) {
      uint64_t count = 0;
      if (read(told_.get(), &count, sizeof(count)) < 0) std::abort();
      std::vector<TransferEvent> events;
      engine_->TakeEvents(&events);
      for (const TransferEvent& event : events) {
        const auto* end = std::get_if<PullEnded>(&event);
        if (end == nullptr) continue;
        if (end->bytes != kPulled * lot.page_bytes) std::abort();
        return Seconds() - start;
      }
    }
  }

 private:
  const std::span<std::byte> pool_;
  UniqueFd told_{eventfd(0, EFD_CLOEXEC)};
  std::unique_ptr<UcxEngine> engine_;
  uint64_t id_ = 0;
};

double GigabytesOf(const Lot& lot) {
  return static_cast<double>(kPulled) * static_cast<double>(lot.page_bytes) / 1e9;
}

// One program's pulls of one page size.
struct Row {
  std::vector<double> rates, owner_cpu, requester_cpu;  // GB/s, seconds a GB

  template <class Pull>
  void Measure(const Owner& owner, const Lot& lot, bool kept, const Pull& pull) {
    const double gb = GigabytesOf(lot);
    const double owner_before = owner.CpuSeconds(), before = CpuSeconds();
    const double took = pull();
    if (!kept) return;
    rates.push_back(gb / took);
    owner_cpu.push_back((owner.CpuSeconds() - owner_before) / gb);
    requester_cpu.push_back((CpuSeconds() - before) / gb);
  }
  double rate() const { return Median(rates); }
  std::string Cpu() const {
    char text[64];
    std::snprintf(text, sizeof(text), "%.2f + %.2f", Median(owner_cpu), Median(requester_cpu));
    return text;
  }
};

struct Rows {
  std::vector<double> nodes;  // GB/s
  Row engine, eager, rendezvous, tcp;
};

class Bench {
 public:
  Rows Measure(size_t page_bytes, int repetitions) {
    Rows rows;
    NodePair nodes(page_bytes);
    for (int i = 0; i <= repetitions; ++i) {
      const Lot lot = MakeLot(++seed_, page_bytes);
      const bool kept = i > 0;  // the first makes connections
      nodes.Prepare(seed_);
      const double took = nodes.Pull(seed_);
      if (kept) rows.nodes.push_back(GigabytesOf(lot) / took);
      engine_owner_.Prepare(seed_, page_bytes);
      rows.engine.Measure(engine_owner_, lot, kept,
                          [&] { return requester_.Pull(engine_owner_.address(), seed_, lot); });
      for (const bool rendezvous : {false, true}) {
        am_owner_.Prepare(seed_, page_bytes);
        (rendezvous ? rows.rendezvous : rows.eager).Measure(am_owner_, lot, kept, [&] {
          return reference_.Pull(lot, pool_, rendezvous);
        });
        am_owner_.AwaitDone();
      }
      tcp_owner_.Prepare(seed_, page_bytes);
      rows.tcp.Measure(tcp_owner_, lot, kept, [&] { return PullTcp(socket_, lot, pool_); });
    }
    return rows;
  }
  ~Bench() { close(socket_); }

 private:
  Owner engine_owner_{"engine"}, am_owner_{"am"}, tcp_owner_{"tcp"};
  const std::span<std::byte> pool_ = [] {
    Pin(kRequesterCore);
    return MakePool(false);
  }();
  Requester requester_{pool_};
  Reference reference_{am_owner_.address()};
  const int socket_ = ConnectTcp(tcp_owner_.address());
  unsigned seed_ = 1;
};

void Add(Report* report, size_t kib, const Rows& rows) {
  const double nodes = Median(rows.nodes);
  const double program = std::max(rows.eager.rate(), rows.rendezvous.rate());
  const std::string name = "pull/" + std::to_string(kib) + "k";
  const auto add = [&](const std::string& what, double value, const std::string& unit,
                       std::optional<double> at_least, const std::string& reference) {
    report->Add({.name = name + what,
                 .value = value,
                 .unit = unit,
                 .at_most = {},
                 .at_least = at_least,
                 .reference = reference});
  };
  char text[200];
  std::snprintf(text, sizeof(text),
                "UCX program %.2f eager, %.2f rendezvous; raw TCP %.2f; CPU s/GB owner + "
                "requester: engine %s, TCP %s",
                rows.eager.rate(), rows.rendezvous.rate(), rows.tcp.rate(),
                rows.engine.Cpu().c_str(), rows.tcp.Cpu().c_str());
  add("", nodes, "GB/s", {}, "end to end, between two nodes");
  add("_engine", rows.engine.rate(), "GB/s", {}, text);
  add("_to_ucx_program", nodes / program, "ratio", 0.9, "best of eager and rendezvous");
  add("_engine_to_ucx_program", rows.engine.rate() / program, "ratio", {},
      "the same, engine alone");
  const bool compared = kib == 256 || kib == 1024;
  add("_to_raw_tcp", nodes / rows.tcp.rate(), "ratio",
      compared ? std::optional<double>(1.05) : std::nullopt, "scattered, unverified");
  if (kib != 64) return;
  const double megabytes = static_cast<double>(kPulled * kib) * 1.024e-3;
  Figure hit{.name = "pull/peer_hit_beyond_ucx_program",
             .value = megabytes / nodes - megabytes / program,
             .unit = "ms",
             .at_most = 1,
             .at_least = {},
             .reference = "256 blocks of 64 KiB, median"};
  report->Add(hit);
}

int Run(int argc, char** argv) {
  std::vector<size_t> sizes{64, 256, 1024, 2048};
  int repetitions = kRepetitions;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--kib") sizes = {static_cast<size_t>(std::atoi(argv[i + 1]))};
    if (option == "--repetitions") repetitions = std::atoi(argv[i + 1]);
  }
  Report report(argc, argv);
  Bench bench;
  for (const size_t kib : sizes) Add(&report, kib, bench.Measure(kib << 10, repetitions));
  AddHotBufferPrograms(&report);
  return report.Finish();
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) {
  using namespace pando::bench;
  setenv("UCX_TLS", "tcp", 0);
  if (argc < 3 || std::string(argv[1]) != "--owner") return Run(argc, argv);
  Pin(kOwnerCore);
  const std::string kind = argv[2];
  return kind == "engine" ? ServeEngine() : kind == "am" ? ServeReference() : ServeTcp();
}
