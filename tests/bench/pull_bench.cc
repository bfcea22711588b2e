// Pulls of 256 scattered pages between two processes, each pinned to a core: UcxEngine beside the
// shortest UCX program that moves and hashes the same pages (the better of eager and rendezvous),
// and beside raw TCP that verifies nothing. All in turn, each lot of new pages; medians.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/bench/figure.h"
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

int Run(int argc, char** argv) {
  Report report(argc, argv);
  Owner engine_owner("engine"), am_owner("am"), tcp_owner("tcp");
  Pin(kRequesterCore);
  const std::span<std::byte> pool = MakePool(false);
  Requester requester(pool);
  Reference reference(am_owner.address());
  const int socket = ConnectTcp(tcp_owner.address());
  unsigned seed = 1;
  for (const size_t kib : {64u, 256u, 1024u, 2048u}) {
    std::vector<double> engine, eager, rendezvous, tcp;
    for (int i = 0; i <= kRepetitions; ++i) {
      const Lot lot = MakeLot(++seed, kib << 10);
      const double bytes = static_cast<double>(kPulled) * static_cast<double>(lot.page_bytes) / 1e9;
      const auto keep = [&](std::vector<double>* rates, double took) {
        if (i > 0) rates->push_back(bytes / took);  // the first makes connections
      };
      engine_owner.Prepare(seed, lot.page_bytes);
      keep(&engine, requester.Pull(engine_owner.address(), seed, lot));
      am_owner.Prepare(seed, lot.page_bytes);
      keep(&eager, reference.Pull(lot, pool, false));
      am_owner.AwaitDone();
      am_owner.Prepare(seed, lot.page_bytes);
      keep(&rendezvous, reference.Pull(lot, pool, true));
      am_owner.AwaitDone();
      tcp_owner.Prepare(seed, lot.page_bytes);
      keep(&tcp, PullTcp(socket, lot, pool));
    }
    const double best = std::max(Median(eager), Median(rendezvous));
    const std::string name = "pull/" + std::to_string(kib) + "k";
    char text[160];
    std::snprintf(text, sizeof(text), "UCX program %.2f eager, %.2f rendezvous; raw TCP %.2f",
                  Median(eager), Median(rendezvous), Median(tcp));
    report.Add({.name = name,
                .value = Median(engine),
                .unit = "GB/s",
                .at_most = {},
                .at_least = {},
                .reference = text});
    report.Add({.name = name + "_to_ucx_program",
                .value = Median(engine) / best,
                .unit = "ratio",
                .at_most = {},
                .at_least = 0.9,
                .reference = "best of eager and rendezvous"});
    Figure raw{.name = name + "_to_raw_tcp",
               .value = Median(engine) / Median(tcp),
               .unit = "ratio",
               .at_most = {},
               .at_least = {},
               .reference = "scattered, unverified"};
    if (kib == 256 || kib == 1024) raw.at_least = 1.05;
    report.Add(raw);
  }
  close(socket);
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
