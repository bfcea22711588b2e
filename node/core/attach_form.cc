// What an Attach says by itself, and what it adds to the description of its replica's space.
#include <set>

#include "node/core/limits.h"
#include "node/core/replicas.h"

namespace pando {
namespace {

std::optional<Problem> CheckVersions(const AttachRequest& request) {
  if (request.protocol_min > limits::kProtocolVersion ||
      request.protocol_max < limits::kProtocolVersion) {
    return Invalid(Text("protocol versions ", request.protocol_min, " to ", request.protocol_max,
                        " found, this node speaks ", limits::kProtocolVersion,
                        ": use a client of the node's version"));
  }
  if (request.checksum_formula != limits::kChecksumFormula) {
    return Invalid(Text("checksum formula ", request.checksum_formula, " found, this node uses ",
                        limits::kChecksumFormula, ": use a client of the node's version"));
  }
  return std::nullopt;
}

std::optional<Problem> CheckFields(const AttachRequest& request) {
  if (request.fields.size() > limits::kFieldsPerSpace) {
    return OverLimit("fields", request.fields.size(), limits::kFieldsPerSpace, "in one space",
                     "join some into a digest");
  }
  std::set<std::string_view> names;
  for (const auto& [name, value] : request.fields) {
    if (name.empty()) return Invalid("a field without a name found: name every field");
    if (name.size() + value.size() > limits::kFieldBytes) {
      return OverLimit("bytes", name.size() + value.size(), limits::kFieldBytes,
                       Text("in field \"", Quotable(name), "\""), "send a digest instead");
    }
    if (!names.insert(name).second) {
      return Invalid(Text("field \"", Quotable(name), "\" found twice: send each field once"));
    }
  }
  return std::nullopt;
}

std::optional<Problem> CheckShape(const AttachRequest& request) {
  if (request.world_size < 1 || request.world_size > limits::kShards) {
    return Invalid(Text("world_size ", request.world_size, " found, 1 to ", limits::kShards,
                        " allowed: send the number of tensor-parallel ranks"));
  }
  if (request.role == Role::kBoth && request.world_size != 1) {
    return Invalid(Text("role both with world_size ", request.world_size,
                        " found, 1 allowed: attach a scheduler and a worker for each shard"));
  }
  if (request.shard.value() >= request.world_size) {
    return Invalid(Text("shard ", request.shard, " found, below world_size ", request.world_size,
                        " allowed: count shards from 0"));
  }
  if (request.block_tokens > limits::kBlockTokens) {
    return OverLimit("tokens", request.block_tokens, limits::kBlockTokens, "in one block",
                     "choose smaller blocks");
  }
  if (request.page_bytes.value() > limits::kPageBytes) {
    return OverLimit("bytes", request.page_bytes.value(), limits::kPageBytes, "in one page",
                     "choose smaller blocks");
  }
  return std::nullopt;
}

template <class T>
std::optional<Problem> MergeValue(std::string_view name, const T& said, const T& unknown,
                                  T* merged) {
  if (said == unknown || said == *merged) return std::nullopt;
  if (*merged != unknown) {
    return Invalid(Text(name, " ", said, " found, ", *merged,
                        " allowed, as the replica's other sessions said: attach all with one"));
  }
  *merged = said;
  return std::nullopt;
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kScheduler:
      return "scheduler";
    case Role::kWorker:
      return "worker";
    case Role::kBoth:
      return "both";
  }
  return "?";
}

std::optional<Problem> CheckAttachForm(const AttachRequest& request) {
  if (auto problem = CheckVersions(request)) return problem;
  if (request.replica_key.empty()) {
    return Invalid("an empty replica key found: send the engine's own id");
  }
  if (request.replica_key.size() > limits::kReplicaKeyBytes) {
    return OverLimit("bytes", request.replica_key.size(), limits::kReplicaKeyBytes,
                     "in a replica key", "choose a shorter one");
  }
  if (!request.credential.empty()) {
    return Invalid("a credential found, none allowed: this node has no tenants, send none");
  }
  if (!request.has_pidfd) {
    return Invalid("no pidfd found, one needed: send the process's own with the attach message");
  }
  if (auto problem = CheckShape(request)) return problem;
  return CheckFields(request);
}

std::optional<Problem> MergeDescription(const AttachRequest& request, SpaceDescription* merged) {
  if (auto problem = MergeValue("world_size", request.world_size, 0u, &merged->shards)) {
    return problem;
  }
  if (auto problem = MergeValue("block_tokens", request.block_tokens, 0u, &merged->block_tokens)) {
    return problem;
  }
  if (auto problem = MergeValue("page_bytes", request.page_bytes, Bytes(), &merged->page_bytes)) {
    return problem;
  }
  for (const auto& [name, value] : request.fields) {
    auto [it, added] = merged->fields.emplace(name, value);
    if (!added && it->second != value) {
      return Invalid(Text("field \"", Quotable(name), "\" is \"", Quotable(value),
                          "\", the replica's other sessions ", "said \"", Quotable(it->second),
                          "\": attach all with one value"));
    }
  }
  if (merged->fields.size() > limits::kFieldsPerSpace) {
    return OverLimit("fields", merged->fields.size(), limits::kFieldsPerSpace,
                     "in the union of a replica's sessions", "join some into a digest");
  }
  return std::nullopt;
}

}  // namespace pando
