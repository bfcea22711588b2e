#include "client/ctl/routing.h"

#include <algorithm>

#include "client/ctl/mix.h"

namespace pando::ctl {
namespace {

// The first id of a trace is often the one system prompt that every request has; the second tells
// conversations apart.
constexpr uint64_t kRoutingIds = 2;

uint64_t HashOfFirstIds(const TraceRequest& request, uint64_t index, uint64_t seed) {
  const uint64_t ids = std::min(kRoutingIds, request.shared_ids());
  uint64_t hash = Mix64(seed + kGolden);
  if (ids == 0) return Mix64(hash + index * kGolden);
  for (uint64_t i = 0; i < ids; ++i) hash = Mix64(hash + (request.hash_ids[i] + 1) * kGolden);
  return hash;
}

}  // namespace

std::optional<Routing> ParseRouting(std::string_view name) {
  for (const Routing routing : {Routing::kRandom, Routing::kRoundRobin, Routing::kPrefix}) {
    if (RoutingName(routing) == name) return routing;
  }
  return std::nullopt;
}

std::string_view RoutingName(Routing routing) {
  switch (routing) {
    case Routing::kRandom:
      return "random";
    case Routing::kRoundRobin:
      return "round-robin";
    case Routing::kPrefix:
      return "prefix";
  }
  return "";
}

size_t Route(Routing routing, const TraceRequest& request, uint64_t index, uint64_t seed,
             size_t replicas) {
  switch (routing) {
    case Routing::kRandom:
      return Mix64(Mix64(seed) + index * kGolden) % replicas;
    case Routing::kRoundRobin:
      return index % replicas;
    case Routing::kPrefix:
      return HashOfFirstIds(request, index, seed) % replicas;
  }
  return 0;
}

}  // namespace pando::ctl
