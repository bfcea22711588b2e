// The radix tree of a space as `pandoctl tree` shows it: one line a run, children below their
// parent. Stateless; any thread.
//
//   runs of space 0
//   └─ 0..32     32 blocks  4 children
//      ├─ 32..410  378 blocks
//      └─ 32..64   32 blocks, 8 of them being written  2 pins  scope tenant/a
#ifndef PANDO_CLIENT_CTL_TREE_VIEW_H_
#define PANDO_CLIENT_CTL_TREE_VIEW_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pando/v1/admin.pb.h"

namespace pando::ctl {

// `peers`: with those that hold each run's last block, as the node was asked for them.
nlohmann::json TreeJson(uint32_t space, const v1::ListRunsResponse& tree, bool peers);
std::string TreeText(uint32_t space, const v1::ListRunsResponse& tree);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_TREE_VIEW_H_
