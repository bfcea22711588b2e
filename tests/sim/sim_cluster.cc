#include "tests/sim/sim_cluster.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/sim/lies.h"

namespace pando::sim {
namespace {

constexpr uint64_t kExtentsLate = 60 * kUnitsPerSecond;

}  // namespace

void SimCluster::Add(SimNode* node, uint32_t extents) {
  const uint32_t member =
      net_.Add({"node-" + std::to_string(nodes_.size()),
                [node](Input input) { node->FromPeers(std::move(input)); },
                [node](PageId page, Bytes) { return node->memory()->BytesOf(page); }});
  nodes_.push_back(node);
  extents_.push_back(extents);
  node->carry = [this, member](Output output) {
    if (net_.Carry(member, &output)) PumpBy(events_->In(random_.Below(4)));
  };
}

void SimCluster::Start() {
  net_.random = [this](uint64_t n) { return random_.Below(n); };
  net_.on_send = [this](uint32_t, uint32_t) { return WayOf(); };
  net_.on_answer = [this](uint32_t, uint32_t, PeerAnswerBody* answer) { return Change(answer); };
  net_.on_feed = [this](uint32_t, uint32_t, SendFeed* feed) { return Change(feed); };
  net_.transfers().SetFate(
      [this](const auto&, const auto&, LoopbackMessage kind) { return Fate(kind); });
  net_.SetTime(events_->now());
  for (uint32_t i = 0; i < size(); ++i) Begin(i);
}

// ---- Nodes

void SimCluster::Begin(uint32_t i) {
  nodes_[i]->Start();
  AddExtents(i);
  if (size() == 1) return;
  net_.SetTime(events_->now());
  net_.Start(i, BootId(random_.Next() | 1));
  PumpBy(events_->now());
}

void SimCluster::AddExtents(uint32_t i) {
  for (uint32_t extent = 0; extent < extents_[i]; ++extent) {
    if (!options_.late_extents) {
      nodes_[i]->AddExtent(ExtentId(extent));
      continue;
    }
    const uint64_t times = random_.OneIn(4) ? 2 : 1;
    for (uint64_t time = 0; time < times; ++time) {
      nodes_[i]->AddExtentAt(events_->In(random_.Below(kExtentsLate)), ExtentId(extent));
    }
  }
}

bool SimCluster::Crash(uint32_t i, Nanos away) {
  if (!nodes_[i]->up()) return false;
  if (size() > 1) net_.Crash(i);
  nodes_[i]->Crash();
  PumpBy(events_->now());
  events_->At(events_->now() + away, [this, i] {
    if (!stopped_ && !nodes_[i]->up()) Begin(i);
  });
  return true;
}

bool SimCluster::Drain(uint32_t i, Nanos ends, Nanos away) {
  if (!nodes_[i]->up() || nodes_[i]->core().status().draining) return false;
  nodes_[i]->Drain();
  events_->At(events_->now() + ends, [this, i, away] {
    if (!healed_) Crash(i, away);
  });
  return true;
}

bool SimCluster::Stall(uint32_t i, Nanos time) {
  if (!nodes_[i]->up()) return false;
  nodes_[i]->Stall(time);
  return true;
}

bool SimCluster::Jump(uint32_t i, Nanos by) {
  nodes_[i]->Jump(by);
  return true;
}

bool SimCluster::Freeze(uint32_t i, Nanos time) {
  nodes_[i]->Freeze(time);
  return true;
}

// ---- Network

void SimCluster::Part(uint32_t a, uint32_t b, Nanos time) {
  net_.Partition(a, b, true);
  events_->At(events_->now() + time, [this, a, b] {
    net_.Partition(a, b, false);
    PumpBy(events_->now());
  });
}

void SimCluster::Reset(uint32_t a, uint32_t b) {
  net_.SetTime(events_->now());
  net_.Break(a, b);
  PumpBy(events_->now());
}

void SimCluster::Open(Fault fault, Nanos time, uint64_t one_in) {
  Window& window = windows_[static_cast<size_t>(fault)];
  window.until = std::max(window.until, time == INT64_MAX ? time : events_->now() + time);
  window.one_in = one_in;
}

bool SimCluster::Hits(Fault fault) {
  const Window& window = windows_[static_cast<size_t>(fault)];
  return events_->now() < window.until && random_.OneIn(window.one_in);
}

testing::PeerNet::Way SimCluster::WayOf() {
  testing::PeerNet::Way way;
  const auto in = [this](uint64_t units) {
    return events_->In(random_.Below(units)) - events_->now();
  };
  way.delay = in(options_.delay);
  if (Hits(Fault::kSlow)) way.delay += in(4 * kUnitsPerSecond);
  if (Hits(Fault::kRepeat)) way.again = in(random_.OneIn(2) ? 100 : 60 * kUnitsPerSecond);
  return way;
}

bool SimCluster::Change(PeerAnswerBody* answer) {
  if (Hits(Fault::kLie)) Lie(answer, &random_);
  return !Hits(Fault::kLose);
}

bool SimCluster::Change(SendFeed* feed) {
  if (Hits(Fault::kLie)) Lie(feed, &random_);
  return !Hits(Fault::kLose);
}

LoopbackFate SimCluster::Fate(LoopbackMessage kind) {
  LoopbackFate fate;
  if (Hits(Fault::kLate)) {
    fate.drop = random_.OneIn(4);
    const uint64_t most = random_.OneIn(10) ? 30 * kUnitsPerSecond : 2 * kUnitsPerSecond;
    fate.delay = events_->In(random_.Below(most)) - events_->now();
  }
  fate.corrupt = kind == LoopbackMessage::kPage && Hits(Fault::kCorrupt);
  return fate;
}

void SimCluster::PumpBy(Nanos time) {
  if (pump_at_ <= time || size() == 1) return;
  pump_at_ = time;
  events_->At(time, [this, time] {
    if (pump_at_ != time) return;  // an earlier one has run since
    pump_at_ = INT64_MAX;
    Pump();
  });
}

void SimCluster::Pump() {
  if (stopped_) return;
  net_.SetTime(events_->now());
  if (net_.Deliver()) return PumpBy(events_->In(random_.Below(4)));
  if (const Nanos next = net_.NextTime(); next != INT64_MAX) PumpBy(next);
}

// ---- The end

void SimCluster::Heal() {
  healed_ = true;
  windows_ = {};
  for (uint32_t a = 0; a < size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) net_.Partition(a, b, false);
  }
  for (uint32_t i = 0; i < size(); ++i) {
    if (nodes_[i]->up()) nodes_[i]->Thaw();
    if (nodes_[i]->up() && nodes_[i]->core().status().draining) Crash(i, 0);
    if (!nodes_[i]->up()) Begin(i);
  }
  PumpBy(events_->now());
}

void SimCluster::CheckConverged(Checker* checker) const {
  std::vector<ClusterStatus> all;
  for (const SimNode* node : nodes_) all.push_back(node->core().status().cluster);
  for (uint32_t i = 0; i < all.size(); ++i) {
    checker->Expect(all[i].grants == 0, "a grant was leaked");
    checker->Expect(all[i].fetches == 0, "a fetch was leaked");
    checker->Expect(all[i].peers.size() + 1 == all.size(), "a peer was forgotten");
    for (const PeerStatus& peer : all[i].peers) {
      // What it holds: all of that is under the budget. (Equal keys are told once.)
      const ClusterStatus& owner = all[peer.peer.value() - 1];
      const uint64_t told = options_.collide ? owner.told_blocks : owner.totals.blocks;
      if (peer.view_complete && peer.blocks == told) continue;
      checker->Fail("after quiet node " + std::to_string(i) + " sees " +
                    std::to_string(peer.blocks) + " of " + std::to_string(told) + " blocks of " +
                    peer.name + (peer.view_complete ? "" : ", incomplete") + ": " + peer.why);
    }
  }
}

}  // namespace pando::sim
