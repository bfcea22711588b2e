#include "node/runtime/metrics.h"

#include <string_view>
#include <utility>
#include <vector>

#include "node/control/counters.h"
#include "node/runtime/metric_families.h"

namespace pando::runtime {
namespace {

using prometheus::MetricType;

void AddAccount(const Account& account, Families* out) {
  out->Counter("requests_settled_total",
               "Requests that were settled, by their engine or by the end of its session",
               account.requests);
  out->Counter("prompt_tokens_total", "Prompt tokens of settled requests: hits and computed ones",
               account.prompt);
  out->Add("hit_tokens_total",
           "Prompt tokens of settled requests that were not computed, by where they came from",
           MetricType::Counter);
  out->Value(account.hit_engine, {{"tier", "engine"}});
  out->Value(account.hit_device, {{"tier", "device"}});
  out->Value(account.hit_host, {{"tier", "host"}});
  out->Value(account.hit_disk, {{"tier", "disk"}});
  out->Value(account.hit_peer, {{"tier", "peer"}});
  out->Counter("computed_tokens_total", "Prompt tokens of settled requests that were computed",
               account.computed);
  out->Counter(
      "failed_tokens_total",
      "Prompt tokens of settled requests whose load failed; they are among the computed ones",
      account.failed);
}

void AddMemory(const CoreStatus& core, const control::NodeFacts& facts, Families* out) {
  out->Add("pages", "Pages of extents that spaces own, by state; the states sum to all of them",
           MetricType::Gauge);
  out->Value(core.pages.free, {{"state", "free"}});
  out->Value(core.pages.reserved, {{"state", "reserved"}});
  out->Value(core.pages.receiving, {{"state", "receiving"}});
  out->Value(core.pages.committed, {{"state", "committed"}});
  out->Value(core.pages.held, {{"state", "held"}});
  out->Value(core.pages.quarantined, {{"state", "quarantined"}});
  out->Add("extents", "Extents of 64 MiB that are there, by whether a space owns them",
           MetricType::Gauge);
  out->Value(core.extents - core.extents_unowned, {{"owner", "space"}});
  out->Value(core.extents_unowned, {{"owner", "none"}});
  out->Gauge("slab_bytes",
             "Bytes of the host slab as configured, whether or not they are there yet",
             facts.slab.value());
  out->Gauge(
      "quarantined_bytes",
      "Bytes of pages that a process may still touch though its claim is over, each page once",
      core.quarantined_bytes);
  uint64_t blocks = 0, runs = 0, evicted = 0, dropped = 0;
  for (const SpaceStatus& space : core.spaces) {
    blocks += space.stats.blocks;
    runs += space.stats.runs;
    evicted += space.stats.evicted_blocks;
    dropped += space.stats.dropped_blocks;
  }
  out->Gauge("spaces", "Spaces that some replica has had since the start", core.spaces.size());
  out->Gauge("blocks", "Blocks in the trees of all spaces, complete or being written", blocks);
  out->Gauge("runs", "Runs (edges) of the trees of all spaces", runs);
  out->Counter("evicted_blocks_total", "Blocks evicted to make room", evicted);
  out->Counter("dropped_blocks_total", "Blocks dropped: found bad, or never completed", dropped);
}

void AddUsers(const CoreStatus& core, Families* out) {
  out->Gauge(
      "sessions",
      "Sessions: connections, attached or not, and ended ones whose process may still touch pages",
      core.sessions);
  out->Gauge("replicas", "Replicas with at least one attached session, complete or not",
             core.replicas);
  out->Gauge("requests_open", "Requests that were acquired and are not yet settled", core.requests);
  out->Add("claims", "Claims that stand, by kind: of replicas here, and of peers (grant)",
           MetricType::Gauge);
  out->Value(core.leases, {{"kind", "lease"}});
  out->Value(core.reservations, {{"kind", "reservation"}});
  out->Value(core.tickets, {{"kind", "ticket"}});
  out->Value(core.grants, {{"kind", "grant"}});
  out->Gauge("holds", "Holds: one for each shard of a claim between its Begin and its End",
             core.holds);
}

}  // namespace

std::string MetricsText(const MetricsInput& input) {
  Families families;
  families.Gauge("ready",
                 "1 once the slab is populated (as far as there is memory), until a drain; else 0",
                 input.ready ? 1 : 0);
  families.Gauge("draining", "1 from the start of a drain, else 0", input.core.draining ? 1 : 0);
  if (input.process.fds) {
    families.Gauge("open_fds", "File descriptors that the node's process has open; none: unknown",
                   *input.process.fds);
  }
  families.Gauge("threads", "Threads of the node's process", input.process.threads);
  AddAccount(input.core.account, &families);
  AddMemory(input.core, input.facts, &families);
  AddUsers(input.core, &families);
  std::string_view last;
  for (const control::NamedCounter& counter : control::kCounters) {
    if (counter.name != last) {
      families.Add(std::string(counter.name) + "_total", counter.help, MetricType::Counter);
    }
    last = counter.name;
    std::vector<prometheus::ClientMetric::Label> labels;
    if (*counter.reason != '\0') labels.push_back({"reason", counter.reason});
    families.Value(counter.value(input.core.counters), std::move(labels));
  }
  if (input.core.cluster.started) AddCluster(input.core.cluster, &families);
  if (input.wire) AddWire(*input.wire, &families);
  return families.Text();
}

}  // namespace pando::runtime
