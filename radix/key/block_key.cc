#include "radix/key/block_key.h"

#include <bit>
#include <cstring>
#include <initializer_list>

#include "radix/base/check.h"
#include "radix/key/xxh3.h"

namespace pando {
namespace {

static_assert(std::endian::native == std::endian::little, "keys are hashed as they lie in memory");

enum Tag : uint32_t { kKeyAbove = 1, kTokens = 2, kExtra = 3, kIdentity = 4, kScope = 5 };

constexpr size_t kHeaderBytes = 8;
constexpr std::string_view kDefaultSecret = "pando: block keys, formula 1";

struct Field {
  Tag tag;
  const void* data;
  size_t bytes;
};

// Writes one field at `to`; returns where the next one goes.
inline unsigned char* Put(unsigned char* to, const Field& field) {
  const auto bytes = static_cast<uint32_t>(field.bytes);
  const auto tag = static_cast<uint32_t>(field.tag);
  std::memcpy(to, &tag, sizeof(tag));
  std::memcpy(to + 4, &bytes, sizeof(bytes));
  if (field.bytes > 0) std::memcpy(to + kHeaderBytes, field.data, field.bytes);
  return to + kHeaderBytes + field.bytes;
}

// Long input goes through the streaming hash: the same value, no buffer of its size.
BlockKey HashLong(std::initializer_list<Field> fields, const unsigned char* secret, size_t bytes) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset_withSecret(&state, secret, bytes);
  for (const Field& field : fields) {
    std::array<unsigned char, kHeaderBytes> header;
    const auto length = static_cast<uint32_t>(field.bytes);
    const auto tag = static_cast<uint32_t>(field.tag);
    std::memcpy(header.data(), &tag, sizeof(tag));
    std::memcpy(header.data() + 4, &length, sizeof(length));
    XXH3_128bits_update(&state, header.data(), header.size());
    if (field.bytes > 0) XXH3_128bits_update(&state, field.data, field.bytes);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

inline BlockKey Hash(std::initializer_list<Field> fields, const unsigned char* secret,
                     size_t secret_bytes) {
  constexpr size_t kShort = 512;
  size_t bytes = 0;
  for (const Field& field : fields) bytes += kHeaderBytes + field.bytes;
  if (bytes > kShort) return HashLong(fields, secret, secret_bytes);
  alignas(64) std::array<unsigned char, kShort> buffer;
  unsigned char* end = buffer.data();
  for (const Field& field : fields) end = Put(end, field);
  const XXH128_hash_t hash = XXH3_128bits_withSecret(
      buffer.data(), static_cast<size_t>(end - buffer.data()), secret, secret_bytes);
  return {hash.low64, hash.high64};
}

}  // namespace

KeyChain::KeyChain(std::string_view secret, bool collide) : collide_(collide) {
  if (secret.empty()) secret = kDefaultSecret;
  const XXH_errorcode made =
      XXH3_generateSecret(secret_.data(), secret_.size(), secret.data(), secret.size());
  PANDO_CHECK(made == XXH_OK) << "no secret could be derived from " << secret.size() << " bytes";
}

BlockKey KeyChain::Root(std::string_view identity, std::string_view scope) const {
  if (collide_) return {};
  return Hash({{kIdentity, identity.data(), identity.size()}, {kScope, scope.data(), scope.size()}},
              secret_.data(), secret_.size());
}

BlockKey KeyChain::Scope(BlockKey above, std::string_view scope) const {
  if (collide_) return {};
  return Hash({{kKeyAbove, &above, sizeof(above)}, {kScope, scope.data(), scope.size()}},
              secret_.data(), secret_.size());
}

BlockKey KeyChain::Block(BlockKey above, std::span<const uint32_t> tokens,
                         std::string_view extra) const {
  if (collide_) return {};
  return Hash({{kKeyAbove, &above, sizeof(above)},
               {kTokens, tokens.data(), tokens.size_bytes()},
               {kExtra, extra.data(), extra.size()}},
              secret_.data(), secret_.size());
}

}  // namespace pando
