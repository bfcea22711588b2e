#include "node/control/status_message.h"

#include "node/control/counters.h"
#include "pando/v1/admin.pb.h"

namespace pando::control {
namespace {

void Write(const PageCounts& pages, v1::PageCounts* out) {
  out->set_free(pages.free);
  out->set_reserved(pages.reserved);
  out->set_committed(pages.committed);
  out->set_held(pages.held);
  out->set_receiving(pages.receiving);
  out->set_quarantined(pages.quarantined);
}

void Write(const Account& account, v1::Account* out) {
  out->set_requests(account.requests);
  out->set_prompt(account.prompt);
  out->set_hit_engine(account.hit_engine);
  out->set_hit_device(account.hit_device);
  out->set_hit_host(account.hit_host);
  out->set_hit_disk(account.hit_disk);
  out->set_hit_peer(account.hit_peer);
  out->set_computed(account.computed);
  out->set_failed(account.failed);
}

void Write(const SpaceStatus& space, v1::Space* out) {
  out->set_space(space.space.value());
  out->set_block_tokens(space.shape.block_tokens);
  out->set_page_bytes(space.shape.page_bytes.value());
  out->set_shards(space.shape.shards);
  for (const auto& [name, value] : space.fields) {
    v1::SpaceField* field = out->add_fields();
    field->set_name(name);
    field->set_value(value);
  }
  Write(space.stats.pages, out->mutable_pages());
  out->set_extents(space.stats.extents);
  out->set_runs(space.stats.runs);
  out->set_blocks(space.stats.blocks);
  out->set_evicted_blocks(space.stats.evicted_blocks);
  out->set_dropped_blocks(space.stats.dropped_blocks);
  Write(space.account, out->mutable_account());
}

}  // namespace

void WriteStatus(const CoreStatus& status, v1::Status* out) {
  out->set_draining(status.draining);
  Write(status.pages, out->mutable_pages());
  out->set_leases(status.leases);
  out->set_reservations(status.reservations);
  out->set_holds(status.holds);
  out->set_tickets(status.tickets);
  out->set_grants(status.grants);
  out->set_requests(status.requests);
  out->set_sessions(status.sessions);
  out->set_replicas(status.replicas);
  out->set_extents(status.extents);
  out->set_extents_unowned(status.extents_unowned);
  out->set_quarantined_bytes(status.quarantined_bytes);
  Write(status.account, out->mutable_account());
  for (const NamedCounter& counter : kCounters) {
    v1::Counter* named = out->add_counters();
    named->set_name(counter.name);
    named->set_reason(counter.reason);
    named->set_value(counter.value(status.counters));
  }
  for (const SpaceStatus& space : status.spaces) Write(space, out->add_spaces());
}

void WriteRun(const RunInfo& run, v1::Run* out) {
  out->set_run(run.run.value());
  out->set_parent(run.parent.value());
  out->set_depth_blocks(run.depth_blocks);
  out->set_blocks(run.blocks);
  out->set_complete_blocks(run.complete_blocks);
  out->set_children(run.children);
  out->set_pins(run.pins);
  out->set_scope(run.scope);
}

}  // namespace pando::control
