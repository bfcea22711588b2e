#include "tests/sim/adversary.h"

#include <algorithm>
#include <utility>

namespace pando::sim {
namespace {

bool OfNode(Fault fault) {
  return fault <= Fault::kFreeze;
}
bool OfNetwork(Fault fault) {
  return fault > Fault::kFreeze && fault < Fault::kDeath;
}

}  // namespace

Adversary::Adversary(const FaultSet& faults, Nanos most, EventQueue* events, Decisions* decisions,
                     SimCluster* cluster)
    : most_(most), events_(events), decider_(decisions, 0), cluster_(cluster) {
  for (size_t i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (!faults.test(i)) continue;
    if (OfNode(fault) || (OfNetwork(fault) && cluster->size() > 1)) kinds_.push_back(fault);
  }
}

void Adversary::Plan(Nanos time) {
  const std::optional<Random> random = decider_.Next();
  if (!random || kinds_.empty()) return;
  events_->At(time, [this, random] {
    if (!stopped_) Strike(*random);
  });
}

void Adversary::KeepOn(uint64_t pause) {
  if (stopped_) return;
  for (const auto& [fault, one_in] :
       {std::pair{Fault::kLose, 200u}, {Fault::kLate, 100u}, {Fault::kCorrupt, 300u}}) {
    if (std::find(kinds_.begin(), kinds_.end(), fault) != kinds_.end()) {
      cluster_->Open(fault, INT64_MAX, one_in);
    }
  }
  Plan(events_->In(pause));
  events_->After(pause, [this, pause] { KeepOn(pause); });
}

// Short ones are as likely as long ones.
Nanos Adversary::Time(Random* random, Nanos most) const {
  Nanos time = most;
  for (uint64_t halves = random->Below(10); halves > 0; --halves) time /= 2;
  return time / 2 + static_cast<Nanos>(random->Below(static_cast<uint64_t>(time / 2) + 1));
}

void Adversary::Strike(Random random) {
  const Fault fault = kinds_[random.Below(kinds_.size())];
  const bool struck = OfNode(fault) ? StrikeNode(fault, &random) : StrikeNetwork(fault, &random);
  faults_ += struck ? 1 : 0;
}

bool Adversary::StrikeNode(Fault fault, Random* random) {
  const auto node = static_cast<uint32_t>(random->Below(cluster_->size()));
  const Nanos time = Time(random, most_);
  switch (fault) {
    case Fault::kCrash:
      return cluster_->Crash(node, time);
    case Fault::kDrain:
      return cluster_->Drain(node, Time(random, 5 * kSecond), time);
    case Fault::kStall:
      return cluster_->Stall(node, time / 2);
    case Fault::kJump:
      return cluster_->Jump(node, 2 * time);
    default:
      return cluster_->Freeze(node, time / 2);
  }
}

bool Adversary::StrikeNetwork(Fault fault, Random* random) {
  const uint32_t nodes = cluster_->size();
  const auto a = static_cast<uint32_t>(random->Below(nodes));
  const auto b = (a + 1 + static_cast<uint32_t>(random->Below(nodes - 1))) % nodes;
  const Nanos time = Time(random, most_);
  if (fault == Fault::kReset) {
    cluster_->Reset(a, b);
  } else if (fault == Fault::kPartition) {
    const bool alone = random->OneIn(3);
    for (uint32_t other = 0; other < nodes; ++other) {
      if (other == b || (alone && other != a)) cluster_->Part(a, other, time);
    }
  } else {
    cluster_->Open(fault, time, random->Between(1, 30));
  }
  return true;
}

}  // namespace pando::sim
