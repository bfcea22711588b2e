#include "tests/fuzz/core_watch.h"

#include <algorithm>
#include <vector>

namespace pando::fuzz {
namespace {

constexpr uint32_t kExtentsMax = 6;
constexpr uint32_t kExtentPagesMax = 48;
constexpr int kStepsOfOneWait = 64;

NodeCore::Options OptionsOf(const Start& start) {
  NodeCore::Options options;
  options.cache.collide = start.collide % 2 == 1;
  options.cache.extent_pages_max = 1 + start.extent_pages % kExtentPagesMax;
  options.cache.space_share = start.share % 10 == 0 ? 1 : (start.share % 10) / 10.0;
  options.slab_bytes = Bytes(kExtentsMax * kExtentBytes.value());
  return options;
}

bool Balances(const Account& a) {
  return a.prompt ==
             a.hit_engine + a.hit_device + a.hit_host + a.hit_disk + a.hit_peer + a.computed &&
         a.failed <= a.computed;
}

}  // namespace

CoreWatch::CoreWatch(const Start& start) : core_(OptionsOf(start)), memory_(&checker_) {
  for (uint32_t i = start.extents % (kExtentsMax + 1); i > 0; --i) AddExtent();
}

void CoreWatch::AddExtent() {
  if (extents_ < kExtentsMax) Step(ExtentReady{ExtentId(extents_++)});
}

void CoreWatch::Step(Input input) {
  std::vector<Output> outputs;
  core_.Step(now_, std::move(input), &outputs);
  for (Output& output : outputs) {
    if (on_output) on_output(output);
  }
  const std::string broken = core_.SelfCheck();
  if (!broken.empty()) checker_.Fail(broken);
}

void CoreWatch::Advance(Nanos by) {
  const Nanos end = now_ + by;
  for (int steps = 0; steps < kStepsOfOneWait && core_.next_deadline() < end; ++steps) {
    now_ = std::max(now_ + 1, core_.next_deadline());
    Step(Tick{});
  }
  now_ = std::max(now_, end);
  Step(Tick{});
}

void CoreWatch::ExpectBase() {
  const CoreStatus base = core_.status();
  Expect(base.leases + base.reservations == 0, "a claim is left");
  Expect(base.holds == 0, "a hold is left");
  Expect(base.requests == 0, "a request is left open");
  Expect(base.tickets == 0, "a ticket is left");
  Expect(base.sessions == 0, "a session is left");
  Expect(base.replicas == 0, "a replica is left");
  Expect(base.cluster.grants == 0, "a grant is left");
  Expect(base.cluster.fetches == 0, "a fetch is left");
  Expect(base.quarantined_bytes == 0, "something is left in quarantine");
  Expect(base.pages.reserved + base.pages.receiving + base.pages.held + base.pages.quarantined == 0,
         "a page is left that nobody claims or touches");
  Expect(Balances(base.account), "the account does not balance");
  Expect(core_.PeersHolding(0).empty(), "a peer holds a block that nobody named");
  Expect(base.spaces.empty() || core_.cache().memory() > Bytes(), "an index without memory");
  Expect(memory_.accessors() == 0, "a copy is still under way (a fault of the fuzzer)");
  for (const SpaceStatus& space : base.spaces) {
    Expect(Balances(space.account), "the account of a space does not balance");
    core_.cache().VisitRuns(space.space, UINT64_MAX, [this](const RunInfo& run) {
      Expect(run.pins == 0, "a run is left pinned");
      Expect(run.blocks == run.complete_blocks, "a run is left incomplete");
    });
  }
}

std::string CoreWatch::trouble() const {
  return checker_.failures() == 0 ? "" : checker_.first_failures().front();
}

}  // namespace pando::fuzz
