#include "tests/e2e/kill/rounds.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "tests/e2e/kill/process_table.h"
#include "tests/e2e/process/engine_lines.h"

namespace pando::e2e {
namespace {

constexpr int64_t kPatience = 1'500'000'000;  // for a step to be reached
constexpr int64_t kStopped = (kClaimMillis + 300) * 1'000'000;
// Pulls that wait for a transfer process, or for one that does not move, end by their own
// deadlines.
constexpr int64_t kPullsEnd = 6 * kSecond;
constexpr char kTransferName[] = "pando-transfer";

bool NeedsLostNode(const std::string& step) {
  return step == "client.lost" || step == "client.unmapped";
}

// At these a client has begun and not ended: it has a hold.
bool HasHold(const std::string& step) {
  constexpr std::array<std::string_view, 3> kHolding = {"client.load_checking",
                                                        "client.page_loaded", "client.page_stored"};
  return std::find(kHolding.begin(), kHolding.end(), step) != kHolding.end();
}

std::string PauseAt(const Plan& plan) {
  return plan.step.empty() ? "" : fmt::format("{}:{}", plan.step, plan.occurrence);
}

}  // namespace

void Rounds::Run(const Plan& plan) {
  report_.now = ToString(plan);
  ++report_.rounds;
  switch (plan.victim) {
    case Victim::kEngine:
      NeedsLostNode(plan.step) ? AtEngineWithoutNode(plan) : AtEngine(plan);
      break;
    case Victim::kNode:
      plan.step.empty() ? AtNode(plan) : AtNodeStep(plan);
      break;
    case Victim::kTransfer:
      AtTransfer(plan);
      break;
  }
  cluster_.StartMissingEngines();
}

void Rounds::AtEngine(const Plan& plan) {
  const EngineSlot& engine = cluster_.engine(plan.node, plan.engine);
  if (!plan.step.empty()) cluster_.StartEngine(plan.node, plan.engine, PauseAt(plan));
  const bool reached = cluster_.Drive(Now() + (plan.step.empty() ? plan.moment_ns : kPatience),
                                      [&] { return engine.paused; });
  if (reached && plan.how != How::kKill) {
    StopEngine(plan);
    if (plan.how == How::kStopThenContinue) return;
  }
  const int64_t killed = Now();
  cluster_.KillEngine(plan.node, plan.engine);
  report_.AddKill(reached ? plan.step : "an engine, at any moment");
  CheckBack(plan.node, killed);
}

void Rounds::StopEngine(const Plan& plan) {
  ++report_.stops;
  EngineSlot& engine = cluster_.engine(plan.node, plan.engine);
  Host& host = cluster_.host(plan.node);
  cluster_.DriveFor(kStopped);
  host.quiet = true;
  cluster_.Drive(Now() + kAnswer, [&] { return cluster_.Idle(plan.node); });
  std::optional<v1::Status> status;
  const bool over = cluster_.Drive(Now() + kStopped, [&] {  // the others' last claims too
    status = cluster_.Status(plan.node);
    return status && status->leases() + status->reservations() + status->pages().receiving() == 0;
  });
  if (!over) {
    report_.Add(Broken::kLeak, fmt::format("claims of a stopped engine outlive their deadline: {}",
                                           status ? status->ShortDebugString() : "no status"));
  } else if (HasHold(plan.step) && status->quarantined_bytes() == 0) {
    report_.Add(Broken::kOther, "what a stopped engine touches is not counted as quarantined");
  }
  if (plan.how != How::kStopThenContinue || engine.child == nullptr) return;
  engine.paused = false;
  engine.since = Now();
  engine.child->Signal(SIGCONT);
  CheckBack(plan.node, Now());
}

// The node dies first, and the engine before it has attached to the next one.
void Rounds::AtEngineWithoutNode(const Plan& plan) {
  const EngineSlot& engine = cluster_.engine(plan.node, plan.engine);
  cluster_.StartEngine(plan.node, plan.engine, PauseAt(plan));
  cluster_.DriveFor(100'000'000 + plan.moment_ns);
  KillNode(plan.node, "a node, at any moment");
  if (cluster_.Drive(Now() + kPatience, [&] { return engine.paused; })) {
    cluster_.KillEngine(plan.node, plan.engine);
    report_.AddKill(plan.step);
  }
  cluster_.StartNode(plan.node);
  CheckBack(plan.node, Now());
}

void Rounds::AtNode(const Plan& plan) {
  cluster_.DriveFor(plan.moment_ns);
  KillNode(plan.node, "a node, at any moment");
  cluster_.DriveFor(plan.moment_ns);
  cluster_.StartNode(plan.node);
}

void Rounds::AtNodeStep(const Plan& plan) {
  Host& host = cluster_.host(plan.node);
  const auto paused = [&] { return host.paused; };
  KillNode(plan.node, "a node, at any moment");
  cluster_.StartNode(plan.node, PauseAt(plan));
  const bool early = host.paused;
  if (plan.step.starts_with("drain.")) {
    cluster_.DriveFor(plan.moment_ns);
    host.node->child().Signal(SIGTERM);
  } else if (!cluster_.Drive(Now() + kPatience / 3, paused)) {
    Provoke(plan);
  }
  const bool reached = cluster_.Drive(Now() + kPatience, paused);
  if (reached && !early && plan.how != How::kKill) {
    ++report_.stops;
    cluster_.DriveFor(kStopped);
    if (plan.how == How::kStopThenContinue && !plan.step.starts_with("drain.")) {
      host.paused = false;
      host.node->child().Signal(SIGCONT);
      CheckBack(plan.node, Now());
      return;
    }
  }
  KillNode(plan.node, reached ? plan.step : "a node, at any moment");
  cluster_.DriveFor(plan.moment_ns);
  cluster_.StartNode(plan.node);
}

void Rounds::Provoke(const Plan& plan) {
  EngineSlot& first = cluster_.engine(plan.node, 0);
  const EngineSlot& second = cluster_.engine(plan.node, 1);
  first.next.insert(first.next.end(),
                    {fmt::format("restart 1 256 {}", kClaimMillis), "expire 1 256",
                     fmt::format("compute 9 20000 {}", kClaimMillis)});
  const std::vector<std::string> twin =
      EngineArgs(*cluster_.host(plan.node).node, "twin", "both", 0, 1, "");
  Child accepted(twin), refused(twin);
  accepted.Send("attach");
  accepted.ReadUntil("attached", Now() + kPatience / 3);
  refused.Send("attach");
  cluster_.StartEngine(plan.node, 1, "client.page_stored:2");
  cluster_.Drive(Now() + kPatience / 3, [&] { return second.paused; });
  cluster_.KillEngine(plan.node, 1);
  report_.AddKill("an engine, at any moment");
}

void Rounds::KillNode(size_t host, const std::string& where) {
  const pid_t node = cluster_.host(host).node->child().pid();
  const std::vector<pid_t> transfer = ChildrenOf(node, kTransferName);
  cluster_.KillNode(host);
  report_.AddKill(where);
  const bool gone = cluster_.Drive(
      Now() + kMemoryBack, [&] { return std::none_of(transfer.begin(), transfer.end(), Lives); });
  if (!gone) report_.Add(Broken::kLeak, "the transfer process outlives its node by a second");
}

void Rounds::AtTransfer(const Plan& plan) {
  cluster_.DriveFor(plan.moment_ns);
  const pid_t node = cluster_.host(plan.node).node->child().pid();
  const std::vector<pid_t> transfer = ChildrenOf(node, kTransferName);
  if (transfer.empty()) return;  // it is being started again
  const bool stop = plan.how != How::kKill;
  if (stop) {
    ++report_.stops;
    kill(transfer[0], SIGSTOP);
    cluster_.DriveFor(kStopped);
  }
  const int64_t since = Now();
  kill(transfer[0], plan.how == How::kStopThenContinue ? SIGCONT : SIGKILL);
  if (plan.how != How::kStopThenContinue) report_.AddKill("a transfer process, at any moment");
  CheckBack(plan.node, since, kPullsEnd);
}

void Rounds::CheckBack(size_t host, int64_t since, int64_t patience) {
  cluster_.host(host).quiet = true;
  if (!cluster_.Idle(host)) {
    cluster_.Drive(Now() + kAnswer, [&] { return cluster_.Idle(host); });
    since = std::max(since, Now());
  }
  std::string left, late;  // late: what a look that began after `patience` still found
  cluster_.Drive(since + patience + 5 * kMemoryBack, [&] {
    const bool overdue = Now() - since > patience;
    left = cluster_.Leftovers(host, cluster_.LivingEngines(host));
    if (overdue && !left.empty()) late = left;
    return left.empty();
  });
  const int64_t took = Now() - since;
  (patience == kMemoryBack ? report_.back_ns : report_.pulls_back_ns).push_back(took);
  if (!late.empty()) {
    report_.Add(Broken::kLeak, fmt::format("host {} after {} ms {}: {}", host, took / 1'000'000,
                                           left.empty() ? "no more, but before" : "still", late));
  }
  cluster_.host(host).quiet = false;
}

}  // namespace pando::e2e
