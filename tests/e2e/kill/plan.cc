#include "tests/e2e/kill/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "tests/sim/random.h"

namespace pando::e2e {
namespace {

// Steps that a life reaches many times; of the others the first time is meant.
constexpr std::array<std::string_view, 15> kOften = {
    "answer.sent",   "acquire.matched", "acquire.leased", "reserve.placed", "begin.held",
    "end.committed", "end.released",    "claim.finished", "claim.aborted",  "settle.counted",
    "ticket.issued", "ticket.answered", "grant.given",    "fetch.started",  "fetch.pulling"};
constexpr std::array<std::string_view, 5> kOnceOfClients = {"client.attach_sent", "client.attached",
                                                            "client.extents_mapped", "client.lost",
                                                            "client.unmapped"};

bool IsOften(std::string_view step) {
  const auto has = [step](const auto& names) {
    return std::find(names.begin(), names.end(), step) != names.end();
  };
  return step.starts_with("client.") ? !has(kOnceOfClients) : has(kOften);
}

How DrawHow(sim::Random& random) {
  const uint64_t of_ten = random.Below(10);
  if (of_ten == 0) return How::kStopThenKill;
  return of_ten == 1 ? How::kStopThenContinue : How::kKill;
}

}  // namespace

std::string ToString(const Plan& plan) {
  constexpr std::array kHow = {"kill", "stop, then kill", "stop, then continue"};
  constexpr std::array kWho = {"an engine", "the node", "the transfer process"};
  std::string text = "round " + std::to_string(plan.round) + ": " +
                     kHow.at(static_cast<size_t>(plan.how)) + " " +
                     kWho.at(static_cast<size_t>(plan.victim));
  if (plan.victim == Victim::kEngine) text += " (" + std::to_string(plan.engine) + ")";
  text += " of host " + std::to_string(plan.node);
  if (plan.step.empty()) return text + " after " + std::to_string(plan.moment_ns / 1000) + " us";
  return text + " at " + plan.step + ":" + std::to_string(plan.occurrence);
}

Planner::Planner(uint64_t seed, std::vector<std::string> steps)
    : seed_(seed), steps_(std::move(steps)) {}

const std::string& Planner::StepOf(uint64_t turn) const {
  std::vector<size_t> order(steps_.size());
  std::iota(order.begin(), order.end(), 0);
  sim::Random random(sim::Mix(seed_, turn / steps_.size()));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return steps_[order[turn % steps_.size()]];
}

Plan Planner::Draw(uint64_t round) const {
  sim::Random random(sim::Mix(seed_ + 1, round));
  Plan plan;
  plan.round = round;
  plan.how = DrawHow(random);
  plan.node = random.Below(kNodes);
  plan.engine = random.Below(kEngines);
  plan.moment_ns = static_cast<int64_t>(random.Below(40'000'000));
  if (round % 4 == 3) {
    constexpr std::array kVictims = {Victim::kEngine, Victim::kNode, Victim::kTransfer,
                                     Victim::kTransfer};
    plan.victim = kVictims.at(random.Below(kVictims.size()));
    return plan;
  }
  plan.step = StepOf(round - round / 4);
  plan.victim = plan.step.starts_with("client.") ? Victim::kEngine : Victim::kNode;
  if (IsOften(plan.step)) plan.occurrence = random.Between(1, 8);
  return plan;
}

}  // namespace pando::e2e
