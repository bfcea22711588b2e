// Which replica a request goes to. Deterministic: same seed, same choices. One thread.
#ifndef PANDO_CLIENT_CTL_ROUTING_H_
#define PANDO_CLIENT_CTL_ROUTING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "client/ctl/trace.h"

namespace pando::ctl {

enum class Routing : uint8_t {
  kRandom,
  kRoundRobin,
  kPrefix,  // by the first shared hash ids, so that equal beginnings meet again
};

std::optional<Routing> ParseRouting(std::string_view name);
std::string_view RoutingName(Routing routing);

// The replica, below `replicas`, for request number `index` of the trace.
size_t Route(Routing routing, const TraceRequest& request, uint64_t index, uint64_t seed,
             size_t replicas);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_ROUTING_H_
