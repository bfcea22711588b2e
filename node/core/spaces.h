// Spaces: which geometries of KV this node serves, and which are the same.
//
// Two replicas share a space exactly if all their fields, block_tokens, page_bytes and shard count
// are equal. The identity is made of tagged and length-prefixed bytes, so that no two different
// lists of fields give the same one (FAULTS A3, A4, A5).
//
// Owner thread only.
#ifndef PANDO_NODE_CORE_SPACES_H_
#define PANDO_NODE_CORE_SPACES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node/core/context.h"
#include "node/core/problem.h"

namespace pando {

struct SpaceDescription {
  std::map<std::string, std::string> fields;  // sorted by name
  uint32_t block_tokens = 0;                  // 0: not known yet
  Bytes page_bytes;                           // 0: not known yet
  uint32_t shards = 1;
};

std::string SpaceIdentity(const SpaceDescription& description);

class Spaces {
 public:
  explicit Spaces(CoreContext* context) : context_(context) {}

  // The space that `description` names, made if it is new.
  std::variant<SpaceId, Problem> FindOrAdd(const SpaceDescription& description);

  // By its identity, as a peer names it.
  std::optional<SpaceId> Find(const std::string& identity) const {
    const auto it = by_identity_.find(identity);
    return it == by_identity_.end() ? std::nullopt : std::optional(it->second);
  }

  const SpaceDescription& description(SpaceId space) const { return known_[space.value()]; }
  uint32_t count() const { return static_cast<uint32_t>(known_.size()); }

 private:
  void LogLookalike(const SpaceDescription& added) const;

  CoreContext* context_;
  std::map<std::string, SpaceId> by_identity_;
  std::vector<SpaceDescription> known_;  // by SpaceId
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_SPACES_H_
