#include "tests/e2e/kill/rest.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/kill/process_table.h"

namespace pando::e2e {
namespace {

// A grant that nobody asks for any more stands for 15 s.
constexpr int64_t kRest = 20 * kSecond;
// Connections of peers that come and go: a feed, a call and pages, in both directions, of each.
constexpr size_t kSlack = 12;

bool KnowsAllPeers(const v1::Status& status) {
  const auto& peers = status.cluster().peers();
  return std::all_of(peers.begin(), peers.end(), [](const v1::ClusterPeer& peer) {
    return peer.state() == v1::ClusterPeer::SELF ||
           (peer.state() == v1::ClusterPeer::CONNECTED && peer.view_complete());
  });
}

}  // namespace

void Rest::Run() {
  Check();
  for (size_t host = 0; host < kNodes; ++host) cluster_.host(host).quiet = true;
  cluster_.StartMissingEngines();
  CheckHits();
  for (size_t host = 0; host < kNodes; ++host) cluster_.host(host).quiet = false;
}

void Rest::Check() {
  report_.now = fmt::format("rest {} after {}", rests_, report_.now);
  for (size_t host = 0; host < kNodes; ++host) {
    for (size_t i = 0; i < kEngines; ++i) cluster_.EndEngine(host, i);
  }
  const int64_t start = Now();
  for (size_t host = 0; host < kNodes; ++host) {
    std::string left;
    if (!cluster_.Drive(start + kRest, [&] { return (left = NotAtBase(host)).empty(); })) {
      report_.Add(Broken::kLeak, fmt::format("host {} at rest: {}", host, left));
    }
  }
  report_.worst_rest_ns = std::max(report_.worst_rest_ns, Now() - start);
  for (size_t host = 0; host < kNodes; ++host) CheckCounts(host);
  ++rests_;
}

pid_t Rest::TransferOf(size_t host) {
  const std::vector<pid_t> all =
      ChildrenOf(cluster_.host(host).node->child().pid(), "pando-transfer");
  return all.size() == 1 ? all[0] : -1;
}

std::string Rest::NotAtBase(size_t host) {
  std::string left = cluster_.Leftovers(host, 0);
  const std::optional<v1::Status> s = cluster_.Status(host);
  if (!s) return left;
  if (s->grants() != 0) left += fmt::format("grants={} ", s->grants());
  if (s->requests() != 0) left += fmt::format("requests={} ", s->requests());
  if (s->replicas() != 0) left += fmt::format("replicas={} ", s->replicas());
  if (s->pages().held() != 0) left += fmt::format("held={} ", s->pages().held());
  if (s->cluster().fetches() != 0) left += fmt::format("fetches={} ", s->cluster().fetches());
  if (TransferOf(host) < 0) left += "no transfer process ";
  if (!KnowsAllPeers(*s)) left += "does not know all its peers ";
  return left;
}

void Rest::CheckCounts(size_t host) {
  const std::optional<v1::Status> s = cluster_.Status(host);
  if (!s) return;  // said by NotAtBase
  const v1::Account& a = s->account();
  if (a.prompt() !=
      a.hit_engine() + a.hit_device() + a.hit_host() + a.hit_disk() + a.hit_peer() + a.computed()) {
    report_.Add(Broken::kOther, fmt::format("the account of host {} does not balance", host));
  }
  report_.hit_host_tokens += a.hit_host();
  report_.hit_peer_tokens += a.hit_peer();
  for (const v1::Space& space : s->spaces()) report_.evicted_blocks += space.evicted_blocks();
  if (!cluster_.host(host).node->SelfCheck()) {
    report_.Add(Broken::kLeak, fmt::format("pandoctl check of host {} finds something", host));
  }
  if (s->extents() != 1) {
    report_.Add(Broken::kLeak, fmt::format("host {} has {} extents", host, s->extents()));
  }
  CheckSize(host, *s);
}

void Rest::CheckSize(size_t host, const v1::Status& status) {
  const pid_t node = cluster_.host(host).node->child().pid();
  const pid_t transfer = TransferOf(host);
  if (transfer < 0) return;  // said by NotAtBase
  const Size now{
      .fds = status.fds(), .threads = status.threads(), .transfer_fds = DescriptorsOf(transfer)};
  Size& base = base_[host];
  if (rests_ == 0) base = now;
  if (now.fds > base.fds + kSlack || now.threads > base.threads + kSlack ||
      now.transfer_fds > base.transfer_fds + kSlack) {
    report_.Add(Broken::kLeak,
                fmt::format("host {}: {} descriptors, {} threads, {} descriptors of its transfer "
                            "process, at the begin {}, {}, {}",
                            host, now.fds, now.threads, now.transfer_fds, base.fds, base.threads,
                            base.transfer_fds));
  }
  if (MapsNamedMemory(node) || MapsNamedMemory(transfer)) {
    report_.Add(Broken::kLeak, fmt::format("host {} uses named shared memory", host));
  }
}

// Each node stores a prompt that nobody has asked for, and finds it again.
void Rest::CheckHits() {
  const std::string prompt = fmt::format("compute {} 512 5000", 1000 + rests_);
  for (size_t host = 0; host < kNodes; ++host) {
    EngineSlot& engine = cluster_.engine(host, 0);
    engine.next.insert(engine.next.end(), {prompt, prompt});
    cluster_.Drive(Now() + 2 * kAnswer, [&] { return cluster_.Idle(host); });
    if (engine.loaded != 31) {  // the last token, and so its block, is always computed
      report_.Add(Broken::kOther,
                  fmt::format("host {} finds {} of 31 blocks again", host, engine.loaded));
    }
  }
}

void Rest::End() {
  Check();
  for (size_t host = 0; host < kNodes; ++host) {
    Host& one = cluster_.host(host);
    one.up = false;
    one.node->child().Signal(SIGTERM);
    const std::optional<int> status = one.node->child().WaitExit(Now() + kAnswer);
    if (!status) report_.Add(Broken::kHang, fmt::format("host {} ignores SIGTERM", host));
    if (status && *status != 0) {
      report_.Add(Broken::kOther, fmt::format("host {} ends with status {}", host, *status));
    }
    if (std::filesystem::exists(one.node->socket())) {
      report_.Add(Broken::kLeak, fmt::format("the socket of host {} is still there", host));
    }
  }
  for (const pid_t pid : ChildrenOf(getpid())) {
    report_.Add(Broken::kLeak, fmt::format("process {} is still there", pid));
  }
}

}  // namespace pando::e2e
