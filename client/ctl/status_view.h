// A node's status and account, for programs (JSON) and for people (text). Stateless; any thread.
#ifndef PANDO_CLIENT_CTL_STATUS_VIEW_H_
#define PANDO_CLIENT_CTL_STATUS_VIEW_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pando/v1/admin.pb.h"

namespace pando::ctl {

nlohmann::json StatusJson(const v1::Status& status);
std::string StatusText(const v1::Status& status);

nlohmann::json StatsJson(const v1::Status& status);
std::string StatsText(const v1::Status& status);
// Empty, or which account does not balance: prompt must be the sum of the hits and computed, and
// the node's account the sum of its spaces'.
std::string StatsProblem(const v1::Status& status);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_STATUS_VIEW_H_
