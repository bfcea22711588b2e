#include "radix/key/block_key.h"

#include <bit>
#include <cstring>
#include <optional>

#include "radix/base/check.h"
#include "radix/key/xxh3.h"

namespace pando {
namespace {

static_assert(std::endian::native == std::endian::little, "keys are hashed as they lie in memory");

enum Tag : uint32_t { kKeyAbove = 1, kTokens = 2, kExtra = 3, kIdentity = 4, kScope = 5 };

constexpr BlockKey kCollision{1, 1};  // not 0, which is no block's name
constexpr std::string_view kDefaultSecret = "pando: block keys, formula 1";

// Tag and length as one word. Words are written and read whole: the hash reads its input by words
// soon after it was written, and a read across two writes would wait for both.
constexpr uint64_t Header(Tag tag, size_t bytes) {
  return tag | uint64_t{bytes} << 32;
}

// The fields of one hash, in a buffer if they are short, else fed to the streaming hash: the value
// is the same, and no memory of their size is needed.
class Fields {
 public:
  Fields(const unsigned char* secret, size_t secret_bytes, size_t payload, size_t fields)
      : secret_(secret),
        secret_bytes_(secret_bytes),
        long_(payload + fields * sizeof(uint64_t) > kShort) {
    if (long_) XXH3_128bits_reset_withSecret(&state_.emplace().state, secret, secret_bytes);
  }

  void Key(BlockKey key) {
    Word(Header(kKeyAbove, sizeof(key)));
    Word(key.low);
    Word(key.high);
  }
  void Bytes(Tag tag, const void* data, size_t bytes) {
    Word(Header(tag, bytes));
    if (long_) {
      if (bytes > 0) XXH3_128bits_update(&state_->state, data, bytes);
      return;
    }
    if (bytes > 0) std::memcpy(end_, data, bytes);
    end_ += bytes;
  }

  BlockKey Digest() {
    const XXH128_hash_t hash =
        long_ ? XXH3_128bits_digest(&state_->state)
              : XXH3_128bits_withSecret(buffer_, static_cast<size_t>(end_ - buffer_), secret_,
                                        secret_bytes_);
    return {hash.low64, hash.high64};
  }

 private:
  static constexpr size_t kShort = 512;
  struct Stream {
    Stream() { XXH3_INITSTATE(&state); }
    XXH3_state_t state;
  };

  void Word(uint64_t word) {
    if (long_) {
      XXH3_128bits_update(&state_->state, &word, sizeof(word));
      return;
    }
    std::memcpy(end_, &word, sizeof(word));
    end_ += sizeof(word);
  }

  const unsigned char* secret_;
  const size_t secret_bytes_;
  const bool long_;
  std::optional<Stream> state_;
  unsigned char* end_ = buffer_;
  alignas(64) unsigned char buffer_[kShort];
};

// Apart from its caller, which would make room for its buffer even when it does not need it.
[[gnu::noinline]] BlockKey AnyBlock(BlockKey above, std::span<const uint32_t> tokens,
                                    std::string_view extra, const unsigned char* secret,
                                    size_t secret_bytes) {
  Fields fields(secret, secret_bytes, sizeof(above) + tokens.size_bytes() + extra.size(), 3);
  fields.Key(above);
  fields.Bytes(kTokens, tokens.data(), tokens.size_bytes());
  fields.Bytes(kExtra, extra.data(), extra.size());
  return fields.Digest();
}

constexpr size_t kUsualTokens = 16;

// A block of kUsualTokens tokens and nothing extra. Written by whole words at places known
// beforehand, so that the compiler keeps them in registers: a chain of keys waits for nothing but
// the hash.
[[gnu::flatten]] BlockKey UsualBlock(BlockKey above, const uint32_t* tokens,
                                     const unsigned char* secret, size_t secret_bytes) {
  constexpr size_t kTokenWords = kUsualTokens * sizeof(uint32_t) / sizeof(uint64_t);
  std::array<uint64_t, 4 + kTokenWords + 1> words;
  words[0] = Header(kKeyAbove, sizeof(above));
  words[1] = above.low;
  words[2] = above.high;
  words[3] = Header(kTokens, kUsualTokens * sizeof(uint32_t));
#pragma GCC unroll 8
  for (size_t i = 0; i < kTokenWords; ++i) {
    std::memcpy(&words[4 + i], tokens + 2 * i, sizeof(uint64_t));
  }
  words[4 + kTokenWords] = Header(kExtra, 0);
  const XXH128_hash_t hash =
      XXH3_128bits_withSecret(words.data(), sizeof(words), secret, secret_bytes);
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
  if (collide_) return kCollision;
  Fields fields(secret_.data(), secret_.size(), identity.size() + scope.size(), 2);
  fields.Bytes(kIdentity, identity.data(), identity.size());
  fields.Bytes(kScope, scope.data(), scope.size());
  return fields.Digest();
}

BlockKey KeyChain::Scope(BlockKey above, std::string_view scope) const {
  if (collide_) return kCollision;
  Fields fields(secret_.data(), secret_.size(), sizeof(above) + scope.size(), 2);
  fields.Key(above);
  fields.Bytes(kScope, scope.data(), scope.size());
  return fields.Digest();
}

// The one that is called for every block: the usual size without a branch, or memory between the
// key above and its hash. The bytes are those that AnyBlock writes.
BlockKey KeyChain::Block(BlockKey above, std::span<const uint32_t> tokens,
                         std::string_view extra) const {
  if (collide_) return kCollision;
  if (tokens.size() == kUsualTokens && extra.empty()) {
    return UsualBlock(above, tokens.data(), secret_.data(), secret_.size());
  }
  return AnyBlock(above, tokens, extra, secret_.data(), secret_.size());
}

[[gnu::flatten]] BlockKey KeyChain::Blocks(BlockKey above, std::span<const uint32_t> tokens,
                                           size_t block_tokens) const {
  if (collide_ || block_tokens != kUsualTokens) {
    for (size_t at = 0; at < tokens.size(); at += block_tokens) {
      above = Block(above, tokens.subspan(at, block_tokens), {});
    }
    return above;
  }
  for (size_t at = 0; at < tokens.size(); at += kUsualTokens) {
    above = UsualBlock(above, tokens.data() + at, secret_.data(), secret_.size());
  }
  return above;
}

}  // namespace pando
