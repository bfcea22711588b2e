#include "node/core/spaces.h"

#include <optional>

#include "node/core/limits.h"
#include "radix/base/check.h"

namespace pando {
namespace {

void AppendNumber(char tag, uint64_t value, std::string* out) {
  out->push_back(tag);
  for (int shift = 0; shift < 64; shift += 8) {
    out->push_back(static_cast<char>(value >> shift & 0xff));
  }
}

void AppendBytes(char tag, const std::string& bytes, std::string* out) {
  AppendNumber(tag, bytes.size(), out);
  out->append(bytes);
}

// The name of the first thing that differs, and both values.
struct Difference {
  std::string name, left, right;
};

const std::string* Value(const SpaceDescription& description, const std::string& name) {
  auto it = description.fields.find(name);
  return it == description.fields.end() ? nullptr : &it->second;
}

std::optional<Difference> FirstDifference(const SpaceDescription& a, const SpaceDescription& b) {
  for (const auto& [name, value] : a.fields) {
    const std::string* other = Value(b, name);
    if (other == nullptr || *other != value) {
      return Difference{name, value, other == nullptr ? "(absent)" : *other};
    }
  }
  for (const auto& [name, value] : b.fields) {
    if (Value(a, name) == nullptr) return Difference{name, "(absent)", value};
  }
  if (a.block_tokens != b.block_tokens) {
    return Difference{"block_tokens", Text(a.block_tokens), Text(b.block_tokens)};
  }
  if (a.page_bytes != b.page_bytes) {
    return Difference{"page_bytes", Text(a.page_bytes), Text(b.page_bytes)};
  }
  if (a.shards != b.shards) return Difference{"world_size", Text(a.shards), Text(b.shards)};
  return std::nullopt;
}

}  // namespace

std::string SpaceIdentity(const SpaceDescription& description) {
  std::string identity;
  for (const auto& [name, value] : description.fields) {
    AppendBytes('n', name, &identity);
    AppendBytes('v', value, &identity);
  }
  AppendNumber('b', description.block_tokens, &identity);
  AppendNumber('p', description.page_bytes.value(), &identity);
  AppendNumber('s', description.shards, &identity);
  return identity;
}

std::variant<SpaceId, Problem> Spaces::FindOrAdd(const SpaceDescription& description) {
  std::string identity = SpaceIdentity(description);
  if (auto it = by_identity_.find(identity); it != by_identity_.end()) return it->second;
  if (known_.size() >= limits::kSpaces) {
    return OverLimit("spaces", known_.size() + 1, limits::kSpaces, "on one node",
                     "serve fewer models from it, or restart it to forget unused ones");
  }
  std::optional<SpaceId> space = context_->cache.AddSpace(
      {identity, description.block_tokens, description.page_bytes, description.shards});
  if (!space) {
    return Unavailable("no memory for the index of another space: give the node more memory");
  }
  PANDO_CHECK(space->value() == known_.size()) << "space " << *space;
  LogLookalike(description);
  by_identity_.emplace(std::move(identity), *space);
  known_.push_back(description);
  const std::string* model = Value(description, "model");
  context_->Log(LogLine::Level::kInfo, "space.added",
                {{"space", Text(*space)},
                 {"model", model == nullptr ? "" : *model},
                 {"block_tokens", Text(description.block_tokens)},
                 {"page_bytes", Text(description.page_bytes)},
                 {"shards", Text(description.shards)}});
  return *space;
}

// Pages are shared less than somebody may have hoped for: say why, once for each new space.
void Spaces::LogLookalike(const SpaceDescription& added) const {
  const std::string* model = Value(added, "model");
  if (model == nullptr) return;
  for (size_t i = known_.size(); i-- > 0;) {
    const std::string* other = Value(known_[i], "model");
    if (other == nullptr || *other != *model) continue;
    std::optional<Difference> difference = FirstDifference(added, known_[i]);
    PANDO_CHECK(difference.has_value()) << "two spaces of one identity";
    context_->Log(LogLine::Level::kWarning, "space.differs",
                  {{"model", *model},
                   {"space", Text(known_.size())},
                   {"other_space", Text(i)},
                   {"field", difference->name},
                   {"value", difference->left},
                   {"other_value", difference->right}});
    return;
  }
}

}  // namespace pando
