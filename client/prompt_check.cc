#include "client/prompt_check.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/limits.h"

namespace pando::client {
namespace {

Objection Limit(const std::string& what, uint64_t found, uint64_t allowed) {
  return {Code::kLimit,
          std::to_string(found) + " " + what + ", allowed are " + std::to_string(allowed)};
}

Objection Invalid(std::string message) {
  return {Code::kInvalid, std::move(message)};
}

Objection CheckSegments(const Prompt& prompt) {
  if (prompt.segments.empty()) return {};
  if (prompt.segments.size() > limits::kSegments) {
    return Limit("segments in a prompt", prompt.segments.size(), limits::kSegments);
  }
  uint64_t last = 0;
  for (const Segment& segment : prompt.segments) {
    if (segment.scope.size() > limits::kScopeBytes) {
      return Limit("bytes in a scope's name", segment.scope.size(), limits::kScopeBytes);
    }
    if (!IsUtf8(segment.scope)) return Invalid("a scope's name is not UTF-8");
    if (segment.end <= last) {
      return Invalid("a segment ends at token " + std::to_string(segment.end) +
                     ", not after the one before, which ends at " + std::to_string(last));
    }
    last = segment.end;
  }
  if (last == prompt.tokens.size()) return {};
  return Invalid("the segments end at token " + std::to_string(last) + " of " +
                 std::to_string(prompt.tokens.size()));
}

Objection CheckExtras(const Prompt& prompt) {
  const Extra* before = nullptr;
  uint64_t bytes = 0;
  for (const Extra& extra : prompt.extras) {
    if (extra.bytes.size() > limits::kExtraBytes) {
      return Limit("bytes of extra in a block", extra.bytes.size(), limits::kExtraBytes);
    }
    if (extra.block >= prompt.tokens.size() || (before && extra.block <= before->block)) {
      return Invalid("extra for block " + std::to_string(extra.block) +
                     " is out of order or behind the prompt's end");
    }
    before = &extra;
    bytes += extra.bytes.size() + 16;  // and its tags
  }
  const uint64_t room = limits::kFrameBytes - 4 * limits::kTokensPerPrompt - (64u << 10);
  if (bytes > room) return Limit("bytes of extra in a prompt", bytes, room);
  return {};
}

}  // namespace

Objection CheckTokenCount(size_t tokens) {
  if (tokens <= limits::kTokensPerPrompt) return {};
  return Limit("tokens", tokens, limits::kTokensPerPrompt);
}

Objection CheckPrompt(const Prompt& prompt) {
  Objection objection = CheckTokenCount(prompt.tokens.size());
  if (objection.ok()) objection = CheckSegments(prompt);
  if (objection.ok()) objection = CheckExtras(prompt);
  return objection;
}

Objection CheckClaims(std::span<const Claim> claims) {
  if (claims.empty()) return Invalid("no claims");
  if (claims.size() > limits::kClaimsPerMessage) {
    return Limit("claims in a call", claims.size(), limits::kClaimsPerMessage);
  }
  std::vector<Claim> sorted(claims.begin(), claims.end());
  std::sort(sorted.begin(), sorted.end(), [](const Claim& a, const Claim& b) {
    return std::pair(a.boot_id, a.id) < std::pair(b.boot_id, b.id);
  });
  if (std::any_of(claims.begin(), claims.end(), [](Claim claim) { return !claim; }))
    return Invalid("claim 0 is no claim");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return {};
  return Invalid("claim " + std::to_string(twice->id) + " is named twice");
}

Objection CheckOptions(const Options& options) {
  const auto& key = options.replica_key;
  if (key.empty()) return Invalid("replica_key is empty: give the replica a name");
  if (key.size() > limits::kReplicaKeyBytes) {
    return Limit("bytes in replica_key", key.size(), limits::kReplicaKeyBytes);
  }
  if (!IsUtf8(key)) return Invalid("replica_key is not UTF-8");
  if (options.world_size == 0 || options.world_size > limits::kShards) {
    return Limit("shards (world_size)", options.world_size, limits::kShards);
  }
  if (options.shard >= options.world_size) {
    return Invalid("shard " + std::to_string(options.shard) + " of world_size " +
                   std::to_string(options.world_size));
  }
  if (options.block_tokens > limits::kBlockTokens) {
    return Limit("tokens in a block", options.block_tokens, limits::kBlockTokens);
  }
  if (options.page_bytes > limits::kPageBytes) {
    return Limit("bytes in a page", options.page_bytes, limits::kPageBytes);
  }
  if (options.fields.size() > limits::kFields) {
    return Limit("fields", options.fields.size(), limits::kFields);
  }
  for (const auto& [name, value] : options.fields) {
    if (name.size() + value.size() > limits::kFieldBytes) {
      return Limit("bytes in a field", name.size() + value.size(), limits::kFieldBytes);
    }
    if (!IsUtf8(name) || !IsUtf8(value)) return Invalid("a field is not UTF-8");
  }
  return {};
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t more = lead < 0x80 ? 0 : lead < 0xc2 ? 4 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (more == 4 || lead > 0xf4 || more >= text.size() - i) return false;
    uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3fu);
    }
    const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
    if (overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace pando::client
