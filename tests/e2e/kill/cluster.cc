#include "tests/e2e/kill/cluster.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "tests/e2e/process/engine_lines.h"
#include "tests/e2e/process/peer_flags.h"

namespace pando::e2e {
namespace {

constexpr int64_t kTick = 5'000'000;        // how often Drive asks whether it is done
constexpr int64_t kPaceDown = 100'000'000;  // between requests while the node is gone
constexpr int64_t kStatusTimeout = 2 * kSecond;

// Three levels: 8 roots of 16 blocks, 4 branches of 16 on each, 4 on each of those: four times what
// a slab has room for.
uint64_t RandomSeed(sim::Random& random) {
  return (random.Below(8) + 1) | random.Below(4) << 48 | random.Below(4) << 56;
}

}  // namespace

Cluster::Cluster(uint64_t seed, Report* report)
    : report_(report), random_(seed), ports_(FreePorts(kNodes)) {
  for (size_t i = 0; i < kNodes; ++i) {
    hosts_[i].node = std::make_unique<NodeProcess>(Flags(i, ""), "64MiB");
    hosts_[i].admin = std::make_unique<ctl::AdminClient>(hosts_[i].node->admin(), kStatusTimeout);
    hosts_[i].up = true;
  }
}

std::vector<std::string> Cluster::Flags(size_t host, const std::string& pause) const {
  std::string peers;
  for (const std::string& port : ports_)
    peers += (peers.empty() ? "" : ",") + ("127.0.0.1:" + port);
  std::vector<std::string> flags = {"--name",        fmt::format("host-{}", host),
                                    "--peer-listen", "127.0.0.1:" + ports_[host],
                                    "--peers",       peers};
  if (!pause.empty()) flags.insert(flags.end(), {"--pause-at", pause});
  return flags;
}

bool Cluster::Drive(int64_t deadline, const std::function<bool()>& done) {
  for (;;) {
    Feed();
    Listen(std::min(deadline, Now() + kTick));
    if (done()) return true;
    if (Now() >= deadline) return false;
  }
}

void Cluster::DriveFor(int64_t nanos) {
  Drive(Now() + nanos, [] { return false; });
}

std::string Cluster::RandomPrompt() {
  return fmt::format("compute {} {} {}", RandomSeed(random_), random_.Between(1, 800),
                     kClaimMillis);
}

void Cluster::Feed() {
  const int64_t now = Now();
  for (Host& host : hosts_) {
    for (EngineSlot& engine : host.engines) {
      if (engine.child == nullptr || engine.paused || !engine.doing.empty()) continue;
      if (!engine.next.empty()) {
        engine.doing = engine.next.front();
        engine.next.erase(engine.next.begin());
      } else if (host.quiet || (!host.up && now - engine.since < kPaceDown)) {
        continue;
      } else {
        engine.doing = RandomPrompt();
      }
      engine.since = now;
      engine.child->Send(engine.doing);
    }
  }
}

void Cluster::Listen(int64_t until) {
  std::vector<pollfd> fds;
  std::vector<std::pair<size_t, size_t>> who;  // host, engine; kEngines: the node
  for (size_t h = 0; h < kNodes; ++h) {
    for (size_t i = 0; i < kEngines; ++i) {
      const EngineSlot& engine = hosts_[h].engines[i];
      if (engine.child == nullptr) continue;
      fds.push_back({.fd = engine.child->out(), .events = POLLIN, .revents = 0});
      who.emplace_back(h, i);
    }
    if (!hosts_[h].up) continue;
    fds.push_back({.fd = hosts_[h].node->child().out(), .events = POLLIN, .revents = 0});
    who.emplace_back(h, kEngines);
  }
  const int64_t left = std::max<int64_t>(until - Now(), 0);
  poll(fds.data(), fds.size(), static_cast<int>((left + 999'999) / 1'000'000));
  for (const auto& [host, i] : who) {  // also those whose lines were read before
    i < kEngines ? Hear(host, i) : HearNode(host);
  }
}

void Cluster::Hear(size_t host, size_t i) {
  EngineSlot& engine = hosts_[host].engines[i];
  while (const std::optional<std::string> line = engine.child->ReadLine(Now())) {
    HearLine(host, engine, *line);
  }
  if (engine.child->WaitExit(Now())) {
    report_->Add(Broken::kOther,
                 fmt::format("an engine of host {} ended by itself at '{}'", host, engine.doing));
    engine = {};
    return;
  }
  if (engine.doing.empty() || engine.paused || Now() - engine.since < kAnswer) return;
  report_->Add(Broken::kHang,
               fmt::format("an engine of host {} does not answer '{}'", host, engine.doing));
  engine = {};
}

void Cluster::HearLine(size_t host, EngineSlot& engine, const std::string& line) {
  if (line.starts_with("paused")) {
    engine.paused = true;
    return;
  }
  if (line.starts_with("not attached") && hosts_[host].up && !hosts_[host].paused) {
    report_->Add(Broken::kOther, fmt::format("an engine cannot attach to host {}", host));
  }
  if (line.starts_with("cycle ")) {
    CycleLine c;
    std::istringstream(line.substr(6)) >> c.hit >> c.loaded >> c.stored >> c.wrong >> c.settled;
    engine.loaded = c.loaded;
    ++report_->requests;
    report_->blocks_loaded += static_cast<uint64_t>(c.loaded);
    report_->blocks_stored += static_cast<uint64_t>(c.stored);
    if (c.wrong != 0) {
      report_->Add(Broken::kWrongBytes,
                   fmt::format("{} pages of '{}' at host {}", c.wrong, engine.doing, host));
    }
    report_->worst_answer_ns = std::max(report_->worst_answer_ns, Now() - engine.since);
  }
  engine.doing.clear();
}

void Cluster::HearNode(size_t host) {
  Child& node = hosts_[host].node->child();
  while (const std::optional<std::string> line = node.ReadLine(Now())) {
    if (line->starts_with("paused")) hosts_[host].paused = true;
  }
  if (const std::optional<int> status = node.WaitExit(Now())) {
    report_->Add(Broken::kOther,
                 fmt::format("the node of host {} ended by itself, status {}", host, *status));
    hosts_[host].up = false;
  }
}

void Cluster::StartEngine(size_t host, size_t i, const std::string& pause) {
  EndEngine(host, i);
  EngineSlot& engine = hosts_[host].engines[i];
  engine.child = std::make_unique<Child>(
      EngineArgs(*hosts_[host].node, fmt::format("engine-{}", ++lives_), "both", 0, 1, pause));
  engine.next = {"attach"};
}

void Cluster::StartMissingEngines() {
  for (size_t h = 0; h < kNodes; ++h) {
    for (size_t i = 0; i < kEngines; ++i) {
      if (hosts_[h].engines[i].child == nullptr) StartEngine(h, i);
    }
  }
}

void Cluster::EndEngine(size_t host, size_t i) {
  EngineSlot& engine = hosts_[host].engines[i];
  if (engine.child == nullptr) return;
  engine.child->CloseInput();
  if (!engine.child->WaitExit(Now() + kAnswer)) {
    report_->Add(Broken::kHang, fmt::format("an engine of host {} does not end", host));
  }
  engine = {};
}

void Cluster::KillEngine(size_t host, size_t i) {
  EngineSlot& engine = hosts_[host].engines[i];
  if (engine.child == nullptr) return;  // ended by itself, which was said
  engine.child->Signal(SIGKILL);
  engine.child->WaitExit(Now() + kAnswer);
  engine = {};
}

void Cluster::KillNode(size_t host) {
  Host& victim = hosts_[host];
  victim.up = victim.paused = false;
  victim.node->child().Signal(SIGKILL);
  victim.node->child().WaitExit(Now() + kAnswer);
}

void Cluster::StartNode(size_t host, const std::string& pause) {
  Host& next = hosts_[host];
  next.up = next.node->Restart(Flags(host, pause));
  next.paused = next.node->paused();
  if (!next.up) {
    report_->Add(Broken::kOther, fmt::format("the node of host {} does not start again", host));
    return;
  }
  next.admin = std::make_unique<ctl::AdminClient>(next.node->admin(), kStatusTimeout);
  for (EngineSlot& engine : next.engines) {
    if (engine.child != nullptr && !next.paused) engine.next = {"attach"};
  }
}

bool Cluster::Idle(size_t host) const {
  for (const EngineSlot& engine : hosts_[host].engines) {
    if (engine.child == nullptr || engine.paused) continue;
    if (!engine.doing.empty() || !engine.next.empty()) return false;
  }
  return true;
}

std::optional<v1::Status> Cluster::Status(size_t host) {
  absl::StatusOr<v1::Status> status = hosts_[host].admin->GetStatus();
  if (!status.ok()) return std::nullopt;
  return *std::move(status);
}

std::string Cluster::Leftovers(size_t host, size_t engines) {
  const std::optional<v1::Status> s = Status(host);
  if (!s) return "no status";
  std::string left;
  const auto expect = [&left](const char* what, uint64_t count, uint64_t base) {
    if (count != base) left += fmt::format("{}={} ", what, count);
  };
  expect("leases", s->leases(), 0);
  expect("reservations", s->reservations(), 0);
  expect("holds", s->holds(), 0);
  expect("tickets", s->tickets(), 0);
  expect("reserved", s->pages().reserved(), 0);
  expect("receiving", s->pages().receiving(), 0);
  expect("quarantined", s->pages().quarantined(), 0);
  expect("sessions", s->sessions(), engines);
  return left;
}

size_t Cluster::LivingEngines(size_t host) const {
  return static_cast<size_t>(
      std::count_if(hosts_[host].engines.begin(), hosts_[host].engines.end(),
                    [](const EngineSlot& engine) { return engine.child != nullptr; }));
}

}  // namespace pando::e2e
