#include "client/ctl/status_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/ctl/account_view.h"
#include "client/ctl/cluster_view.h"
#include "client/ctl/table.h"
#include "radix/base/units.h"

namespace pando::ctl {
namespace {

using nlohmann::json;

json PagesJson(const v1::PageCounts& pages) {
  return {{"free", pages.free()},           {"reserved", pages.reserved()},
          {"committed", pages.committed()}, {"held", pages.held()},
          {"receiving", pages.receiving()}, {"quarantined", pages.quarantined()}};
}

json FieldsJson(const v1::Space& space) {
  json fields = json::object();
  for (const v1::SpaceField& field : space.fields()) fields[field.name()] = field.value();
  return fields;
}

json SpaceJson(const v1::Space& space) {
  return {{"space", space.space()},
          {"block_tokens", space.block_tokens()},
          {"page_bytes", space.page_bytes()},
          {"shards", space.shards()},
          {"fields", FieldsJson(space)},
          {"pages", PagesJson(space.pages())},
          {"extents", space.extents()},
          {"runs", space.runs()},
          {"blocks", space.blocks()},
          {"evicted_blocks", space.evicted_blocks()},
          {"dropped_blocks", space.dropped_blocks()}};
}

// Identity as people tell spaces apart: the model, if the engine named one.
std::string ModelOf(const v1::Space& space) {
  for (const v1::SpaceField& field : space.fields()) {
    if (field.name() == "model") return field.value();
  }
  return "-";
}

std::string Bytes(uint64_t bytes) {
  return FormatBytes(pando::Bytes(bytes));
}

std::string HeadText(const v1::Status& status) {
  const std::string state = status.draining() ? "draining" : status.ready() ? "ready" : "not ready";
  Table table({}, {Table::kLeft, Table::kLeft});
  table.Row({"node", fmt::format("{}, version {}, boot {:016x}", status.name(), status.version(),
                                 status.boot_id())});
  table.Row({"state", fmt::format("{}, up {}", state, Duration(status.uptime_ms()))});
  table.Row({"slab",
             fmt::format("{} configured, {} extents, {} of them in no space, {} quarantined",
                         Bytes(status.slab_bytes()), Thousands(status.extents()),
                         Thousands(status.extents_unowned()), Bytes(status.quarantined_bytes()))});
  table.Row({"attached", fmt::format("{} replicas, {} sessions", Thousands(status.replicas()),
                                     Thousands(status.sessions()))});
  table.Row(
      {"claims", fmt::format("{} leases, {} reservations, {} holds, {} tickets, {} grants, {} "
                             "open requests",
                             Thousands(status.leases()), Thousands(status.reservations()),
                             Thousands(status.holds()), Thousands(status.tickets()),
                             Thousands(status.grants()), Thousands(status.requests()))});
  table.Row({"process", fmt::format("{} fds, {} threads",
                                    status.has_fds() ? Thousands(status.fds()) : "unknown",
                                    Thousands(status.threads()))});
  return table.Text();
}

std::string SpacesText(const v1::Status& status) {
  if (status.spaces().empty()) return "no space yet: no replica has attached\n";
  Table table({"space", "model", "block", "page", "shards", "extents", "runs", "blocks", "evicted",
               "dropped"},
              {Table::kRight, Table::kLeft, Table::kRight, Table::kRight, Table::kRight,
               Table::kRight, Table::kRight, Table::kRight, Table::kRight, Table::kRight});
  for (const v1::Space& space : status.spaces()) {
    table.Row({std::to_string(space.space()), ModelOf(space), std::to_string(space.block_tokens()),
               Bytes(space.page_bytes()), std::to_string(space.shards()),
               Thousands(space.extents()), Thousands(space.runs()), Thousands(space.blocks()),
               Thousands(space.evicted_blocks()), Thousands(space.dropped_blocks())});
  }
  return table.Text();
}

std::string PagesText(const v1::Status& status) {
  Table table({"pages", "free", "reserved", "committed", "held", "receiving", "quarantined"},
              {Table::kLeft, Table::kRight, Table::kRight, Table::kRight, Table::kRight,
               Table::kRight, Table::kRight});
  const auto row = [&](const std::string& name, const v1::PageCounts& pages) {
    table.Row({name, Thousands(pages.free()), Thousands(pages.reserved()),
               Thousands(pages.committed()), Thousands(pages.held()), Thousands(pages.receiving()),
               Thousands(pages.quarantined())});
  };
  for (const v1::Space& space : status.spaces()) {
    row(fmt::format("space {}", space.space()), space.pages());
  }
  row("all", status.pages());
  return table.Text();
}

std::string CountersText(const v1::Status& status) {
  Table table({"since start", "count"}, {Table::kLeft, Table::kRight});
  bool any = false;
  for (const v1::Counter& counter : status.counters()) {
    if (counter.value() == 0) continue;
    const std::string why = counter.reason().empty() ? "" : ", " + counter.reason();
    table.Row({counter.name() + why, Thousands(counter.value())});
    any = true;
  }
  return any ? "\n" + table.Text() : "";
}

}  // namespace

json StatusJson(const v1::Status& status) {
  json spaces = json::array();
  for (const v1::Space& space : status.spaces()) spaces.push_back(SpaceJson(space));
  json counters = json::object(), reasons = json::object();
  for (const v1::Counter& counter : status.counters()) {
    json& total = counters.emplace(counter.name(), 0u).first.value();
    total = total.get<uint64_t>() + counter.value();
    if (!counter.reason().empty()) reasons[counter.name()][counter.reason()] = counter.value();
  }
  return {{"boot_id", fmt::format("{:016x}", status.boot_id())},
          {"name", status.name()},
          {"version", status.version()},
          {"uptime_ms", status.uptime_ms()},
          {"ready", status.ready()},
          {"draining", status.draining()},
          {"pages", PagesJson(status.pages())},
          {"leases", status.leases()},
          {"reservations", status.reservations()},
          {"holds", status.holds()},
          {"tickets", status.tickets()},
          {"grants", status.grants()},
          {"requests", status.requests()},
          {"sessions", status.sessions()},
          {"replicas", status.replicas()},
          {"fds", status.has_fds() ? json(status.fds()) : json()},
          {"threads", status.threads()},
          {"extents", status.extents()},
          {"extents_unowned", status.extents_unowned()},
          {"slab_bytes", status.slab_bytes()},
          {"quarantined_bytes", status.quarantined_bytes()},
          {"counters", counters},
          {"reasons", reasons},
          {"spaces", spaces},
          {"cluster", ClusterJson(status)}};
}

std::string StatusText(const v1::Status& status) {
  return HeadText(status) + "\n" + SpacesText(status) + "\n" + PagesText(status) +
         CountersText(status);
}

json StatsJson(const v1::Status& status) {
  json stats = AccountJson(status.account());
  stats["spaces"] = json::array();
  for (const v1::Space& space : status.spaces()) {
    json account = AccountJson(space.account());
    account["space"] = space.space();
    stats["spaces"].push_back(account);
  }
  return stats;
}

std::string StatsText(const v1::Status& status) {
  Table table = AccountTable({"settled"});
  for (const v1::Space& space : status.spaces()) {
    AccountRow({fmt::format("space {}", space.space())}, space.account(), &table);
  }
  AccountRow({"all"}, status.account(), &table);
  return table.Text() + kAccountLegend;
}

std::string StatsProblem(const v1::Status& status) {
  uint64_t prompt = 0;
  for (const v1::Space& space : status.spaces()) {
    const std::string problem =
        AccountProblem(fmt::format("space {}", space.space()), space.account());
    if (!problem.empty()) return problem;
    prompt += space.account().prompt();
  }
  if (!status.spaces().empty() && prompt != status.account().prompt()) {
    return fmt::format("the spaces' prompt tokens sum to {}, the node's account has {}", prompt,
                       status.account().prompt());
  }
  return AccountProblem("the node", status.account());
}

}  // namespace pando::ctl
