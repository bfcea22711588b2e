// The cluster as one of its nodes sees it: its peers, and what all nodes have counted.
//
// Each node tells its counters to the others now and then, so any of them can print all, each with
// the age of its figures. A node that was never heard is named, not counted; one that is configured
// under two addresses is counted once. Stateless; any thread.
#ifndef PANDO_CLIENT_CTL_CLUSTER_VIEW_H_
#define PANDO_CLIENT_CTL_CLUSTER_VIEW_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pando/v1/admin.pb.h"

namespace pando::ctl {

// null: the node is in no cluster.
nlohmann::json ClusterJson(const v1::Status& status);
std::string PeersText(const v1::Status& status);
// Each peer is connected, or this node itself, and all that it tells is known.
bool PeersKnown(const v1::Status& status);

// Each node's account and their sum, in tokens.
nlohmann::json ClusterStatsJson(const v1::Status& status);
std::string ClusterStatsText(const v1::Status& status);
// Empty, or which account does not balance.
std::string ClusterStatsProblem(const v1::Status& status);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_CLUSTER_VIEW_H_
