#include "tests/sim/sim_cluster.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pando::sim {

void SimCluster::Add(SimNode* node) {
  const uint32_t member =
      net_.Add({"node-" + std::to_string(nodes_.size()),
                [node](Input input) { node->FromPeers(std::move(input)); },
                [node](PageId page, Bytes) { return node->memory().BytesOf(page); }});
  nodes_.push_back(node);
  node->carry = [this, member](Output output) {
    if (net_.Carry(member, &output)) PumpBy(events_->In(random_->Below(4)));
  };
}

void SimCluster::Start() {
  net_.random = [this](uint64_t n) { return random_->Below(n); };
  net_.transfers().SetFate(
      [this](const auto&, const auto&, LoopbackMessage kind) { return Fate(kind); });
  net_.on_feed = [this](uint32_t, uint32_t, SendFeed*) { return !faults_ || !random_->OneIn(200); };
  net_.on_answer = [this](uint32_t, uint32_t, PeerAnswerBody*) {
    return !faults_ || !random_->OneIn(200);
  };
  net_.SetTime(events_->now());
  for (uint32_t i = 0; i < nodes_.size(); ++i) net_.Start(i, BootId(random_->Next() | 1));
  PumpBy(events_->now());
  events_->After(10'000, [this] { Disturb(); });
}

LoopbackFate SimCluster::Fate(LoopbackMessage kind) {
  LoopbackFate fate;
  if (!faults_) return fate;
  fate.drop = random_->OneIn(2000);
  fate.corrupt = kind == LoopbackMessage::kPage && random_->OneIn(300);
  if (random_->OneIn(50)) fate.delay = static_cast<Nanos>(random_->Below(2'000'000'000));
  if (random_->OneIn(2000)) fate.delay = 20'000'000'000;
  return fate;
}

// Two nodes are parted for up to a minute.
void SimCluster::Disturb() {
  if (stopped_ || !faults_) return;
  const auto count = static_cast<uint32_t>(nodes_.size());
  const auto a = static_cast<uint32_t>(random_->Below(count));
  const auto b = (a + 1 + static_cast<uint32_t>(random_->Below(count - 1))) % count;
  net_.Partition(a, b, true);
  events_->After(random_->Below(600'000), [this, a, b] {
    net_.Partition(a, b, false);
    PumpBy(events_->now());
  });
  events_->After(random_->Below(300'000), [this] { Disturb(); });
}

void SimCluster::Heal() {
  faults_ = false;
  for (uint32_t a = 0; a < nodes_.size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) net_.Partition(a, b, false);
  }
  PumpBy(events_->now());
}

void SimCluster::PumpBy(Nanos time) {
  if (pump_at_ <= time) return;
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
  if (net_.Deliver()) return PumpBy(events_->In(random_->Below(4)));
  if (const Nanos next = net_.NextTime(); next != INT64_MAX) PumpBy(next);
}

void SimCluster::CheckConverged(Checker* checker) const {
  std::vector<ClusterStatus> all;
  for (const SimNode* node : nodes_) all.push_back(node->core().status().cluster);
  for (uint32_t i = 0; i < all.size(); ++i) {
    checker->Expect(all[i].grants == 0, "a grant was leaked");
    checker->Expect(all[i].fetches == 0, "a fetch was leaked");
    for (const PeerStatus& peer : all[i].peers) {
      // What it holds: all of that is under the budget. (Equal keys are told once.)
      const ClusterStatus& owner = all[peer.peer.value() - 1];
      const uint64_t told = collide_ ? owner.told_blocks : owner.totals.blocks;
      if (peer.view_complete && peer.blocks == told) continue;
      checker->Fail("after quiet node " + std::to_string(i) + " sees " +
                    std::to_string(peer.blocks) + " of " + std::to_string(told) + " blocks of " +
                    peer.name + ": " + peer.why);
    }
  }
}

}  // namespace pando::sim
