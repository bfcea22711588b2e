#include "node/runtime/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "node/control/counters.h"

namespace pando::runtime {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// Collects families; a value is exact up to 2^53, as everything in Prometheus is.
class Families {
 public:
  void Add(const std::string& name, const char* help, MetricType type) {
    families_.push_back({"pando_" + name, help, type, {}});
  }
  // Another value of the last family.
  void Value(uint64_t value, std::vector<prometheus::ClientMetric::Label> labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    const auto number = static_cast<double>(value);
    if (families_.back().type == MetricType::Counter) metric.counter.value = number;
    if (families_.back().type == MetricType::Gauge) metric.gauge.value = number;
    families_.back().metric.push_back(std::move(metric));
  }
  void Counter(const std::string& name, const char* help, uint64_t value) {
    Add(name, help, MetricType::Counter);
    Value(value);
  }
  void Gauge(const std::string& name, const char* help, uint64_t value) {
    Add(name, help, MetricType::Gauge);
    Value(value);
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

void AddAccount(const Account& account, Families* out) {
  out->Counter("requests_settled_total", "Requests that are in the account", account.requests);
  out->Counter("prompt_tokens_total", "Prompt tokens of settled requests", account.prompt);
  out->Add("hit_tokens_total", "Prompt tokens that did not have to be computed, by source",
           MetricType::Counter);
  out->Value(account.hit_engine, {{"tier", "engine"}});
  out->Value(account.hit_device, {{"tier", "device"}});
  out->Value(account.hit_host, {{"tier", "host"}});
  out->Value(account.hit_disk, {{"tier", "disk"}});
  out->Value(account.hit_peer, {{"tier", "peer"}});
  out->Counter("computed_tokens_total", "Prompt tokens that were computed", account.computed);
  out->Counter("failed_tokens_total",
               "Prompt tokens loaded, found bad or too late, and computed after all",
               account.failed);
}

void AddMemory(const CoreStatus& core, const control::NodeFacts& facts, Families* out) {
  out->Add("pages", "Pages by state; the states sum to all pages", MetricType::Gauge);
  out->Value(core.pages.free, {{"state", "free"}});
  out->Value(core.pages.reserved, {{"state", "reserved"}});
  out->Value(core.pages.receiving, {{"state", "receiving"}});
  out->Value(core.pages.committed, {{"state", "committed"}});
  out->Value(core.pages.held, {{"state", "held"}});
  out->Value(core.pages.quarantined, {{"state", "quarantined"}});
  out->Add("extents", "Extents by owner", MetricType::Gauge);
  out->Value(core.extents - core.extents_unowned, {{"owner", "space"}});
  out->Value(core.extents_unowned, {{"owner", "none"}});
  out->Gauge("slab_bytes", "Host slab as configured", facts.slab.value());
  out->Gauge("quarantined_bytes", "Bytes of pages that are held though their claim is over",
             core.quarantined_bytes);
  uint64_t blocks = 0, runs = 0, evicted = 0, dropped = 0;
  for (const SpaceStatus& space : core.spaces) {
    blocks += space.stats.blocks;
    runs += space.stats.runs;
    evicted += space.stats.evicted_blocks;
    dropped += space.stats.dropped_blocks;
  }
  out->Gauge("spaces", "Spaces", core.spaces.size());
  out->Gauge("blocks", "Blocks in the trees", blocks);
  out->Gauge("runs", "Runs of the trees", runs);
  out->Counter("evicted_blocks_total", "Blocks evicted", evicted);
  out->Counter("dropped_blocks_total", "Blocks dropped: bad, or never completed", dropped);
}

void AddUsers(const CoreStatus& core, Families* out) {
  out->Gauge("sessions", "Attached sessions", core.sessions);
  out->Gauge("replicas", "Replicas", core.replicas);
  out->Gauge("requests_open", "Requests acquired and not settled", core.requests);
  out->Add("claims", "Claims by kind", MetricType::Gauge);
  out->Value(core.leases, {{"kind", "lease"}});
  out->Value(core.reservations, {{"kind", "reservation"}});
  out->Value(core.tickets, {{"kind", "ticket"}});
  out->Value(core.grants, {{"kind", "grant"}});
  out->Gauge("holds", "Holds", core.holds);
}

}  // namespace

std::string MetricsText(const MetricsInput& input) {
  Families families;
  families.Gauge("ready", "1 once the slab is there, until a drain", input.ready ? 1 : 0);
  families.Gauge("draining", "1 from the start of a drain", input.core.draining ? 1 : 0);
  families.Gauge("open_fds", "Open file descriptors of the node", input.process.fds);
  families.Gauge("threads", "Threads of the node", input.process.threads);
  AddAccount(input.core.account, &families);
  AddMemory(input.core, input.facts, &families);
  AddUsers(input.core, &families);
  for (const control::NamedCounter& counter : control::kCounters) {
    families.Counter(std::string(counter.name) + "_total", counter.help,
                     input.core.counters.*counter.value);
  }
  return families.Text();
}

}  // namespace pando::runtime
