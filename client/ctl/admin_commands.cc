#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "client/ctl/admin_client.h"
#include "client/ctl/cluster_view.h"
#include "client/ctl/commands.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"
#include "client/ctl/status_view.h"
#include "client/ctl/tree_view.h"

namespace pando::ctl {
namespace {

int Fail(const absl::Status& status) {
  Complain(std::string(status.message()));
  return status.code() == absl::StatusCode::kUnavailable ? kUnreachable : kFailed;
}

void PrintJson(const nlohmann::json& json) {
  // Names come from engines: bytes that are no UTF-8 must not end the program.
  Say(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

constexpr int kWaitPollMs = 50;

int64_t NowNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

absl::StatusOr<v1::Status> GetStatus(const AdminArgs& admin) {
  return AdminClient(admin.address, admin.timeout_ns).GetStatus();
}

}  // namespace

int RunStatus(const AdminArgs& admin) {
  const absl::StatusOr<v1::Status> status = GetStatus(admin);
  if (!status.ok()) return Fail(status.status());
  if (admin.json) {
    PrintJson(StatusJson(*status));
  } else {
    Say(StatusText(*status));
  }
  return kOk;
}

int RunPeers(const AdminArgs& admin, int64_t wait_ns) {
  AdminClient client(admin.address, admin.timeout_ns);
  const int64_t deadline = NowNanos() + wait_ns;
  absl::StatusOr<v1::Status> status = client.GetStatus();
  while (status.ok() && wait_ns > 0 && !PeersKnown(*status) && NowNanos() < deadline) {
    ::poll(nullptr, 0, kWaitPollMs);
    status = client.GetStatus();
  }
  if (!status.ok()) return Fail(status.status());
  if (admin.json) {
    PrintJson({{"cluster", ClusterJson(*status)}});
  } else {
    Say(PeersText(*status));
  }
  if (wait_ns == 0 || PeersKnown(*status)) return kOk;
  Complain("not all peers are connected and known by now; the column `state` says which");
  return kFailed;
}

int RunStats(const AdminArgs& admin, bool cluster) {
  const absl::StatusOr<v1::Status> status = GetStatus(admin);
  if (!status.ok()) return Fail(status.status());
  if (admin.json) {
    PrintJson(cluster ? ClusterStatsJson(*status) : StatsJson(*status));
  } else {
    Say(cluster ? ClusterStatsText(*status) : StatsText(*status));
  }
  const std::string problem = cluster ? ClusterStatsProblem(*status) : StatsProblem(*status);
  if (problem.empty()) return kOk;
  Complain(problem);
  return kFailed;
}

int RunTree(const AdminArgs& admin, const TreeArgs& tree) {
  AdminClient client(admin.address, admin.timeout_ns);
  const absl::StatusOr<v1::Status> status = client.GetStatus();
  if (!status.ok()) return Fail(status.status());
  const auto spaces = static_cast<uint32_t>(status->spaces_size());
  if (tree.space && *tree.space >= spaces) {
    Complain(fmt::format("the node has no space {}; it has {} spaces, numbered from 0", *tree.space,
                         spaces));
    return kFailed;
  }
  nlohmann::json all = nlohmann::json::array();
  std::string text = spaces == 0 ? "no space yet: no replica has attached\n" : "";
  for (uint32_t space = 0; space < spaces; ++space) {
    if (tree.space && *tree.space != space) continue;
    const absl::StatusOr<v1::ListRunsResponse> runs =
        client.ListRuns(space, tree.limit, tree.peers);
    if (!runs.ok()) return Fail(runs.status());
    all.push_back(TreeJson(space, *runs, tree.peers));
    text += TreeText(space, *runs);
  }
  if (admin.json) {
    PrintJson({{"spaces", all}});
  } else {
    Say(text);
  }
  return kOk;
}

int RunCheck(const AdminArgs& admin) {
  const absl::StatusOr<std::string> broken =
      AdminClient(admin.address, admin.timeout_ns).SelfCheck();
  if (!broken.ok()) return Fail(broken.status());
  if (admin.json) {
    PrintJson({{"broken", *broken}});
  } else if (broken->empty()) {
    Say("recounted: all counts agree\n");
  }
  if (broken->empty()) return kOk;
  Complain("the node's recount found: " + Printable(*broken));
  return kFailed;
}

}  // namespace pando::ctl
