#include "transfer/memory/chunk_kernel.h"

// xxHash's own AVX2 steps, which its public interface does not offer one by one. Tests compare the
// result with the library's, and another version of the library falls back to its interface.
#if defined(__x86_64__)
#define XXH_INLINE_ALL
#define XXH_X86DISPATCH
#define XXH_DISPATCH_AVX2 1
#define XXH_TARGET_AVX2 __attribute__((target("avx2")))
#include <immintrin.h>
#include <xxhash.h>
#if XXH_VERSION_NUMBER >= 800 && XXH_VERSION_NUMBER < 900
#define PANDO_CHUNK_KERNEL 1
#endif
#endif

namespace pando {

#if defined(PANDO_CHUNK_KERNEL)

namespace {

// XXH3's long form for 4096 bytes: 64 lines, the secret moves on by 8 bytes a line and starts over
// every 16 lines with a scramble; the last line has a place of its own in the secret.
constexpr size_t kLines = 64;
constexpr size_t kLinesPerBlock = (XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN) / 8;
static_assert(kLinesPerBlock == 16 && XXH_STRIPE_LEN == kLineBytes);
constexpr size_t kLinesAhead = 16;  // fetched early; from 8 to 64 it makes no difference

}  // namespace

bool ChunkKernel::Usable() {
  static const bool usable = __builtin_cpu_supports("avx2") != 0;
  return usable;
}

ChunkKernel::ChunkKernel()
    : accumulators_{XXH_PRIME32_3, XXH_PRIME64_1, XXH_PRIME64_2, XXH_PRIME64_3,
                    XXH_PRIME64_4, XXH_PRIME32_2, XXH_PRIME64_5, XXH_PRIME32_1} {}

XXH_TARGET_AVX2 void ChunkKernel::Lines(std::byte* to, const std::byte* from, size_t lines,
                                        const std::byte* next) {
  alignas(64) unsigned char line[kLineBytes];
  for (size_t left = lines; left != 0; --left, ++line_) {
    const auto* source = reinterpret_cast<const __m256i*>(from);
    const __m256i low = _mm256_loadu_si256(source);
    const __m256i high = _mm256_loadu_si256(source + 1);
    const std::byte* ahead = left > kLinesAhead ? from + kLinesAhead * kLineBytes
                                                : next + (kLinesAhead - left) * kLineBytes;
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + 1, high);
    // The hash reads what was loaded, not the source again: that may change meanwhile.
    _mm256_store_si256(reinterpret_cast<__m256i*>(line), low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(line) + 1, high);
    const size_t in_block = line_ % kLinesPerBlock;
    const bool last = line_ == kLines - 1;
    const size_t at =
        last ? XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN - XXH_SECRET_LASTACC_START : in_block * 8;
    XXH3_accumulate_512_avx2(accumulators_, line, XXH3_kSecret + at);
    if (in_block == kLinesPerBlock - 1 && !last) {
      XXH3_scrambleAcc_avx2(accumulators_, XXH3_kSecret + XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN);
    }
    from += kLineBytes;
    to += kLineBytes;
  }
}

uint64_t ChunkKernel::Finish() const {
  return XXH3_mergeAccs(accumulators_, XXH3_kSecret + XXH_SECRET_MERGEACCS_START,
                        kLines * kLineBytes * XXH_PRIME64_1);
}

#else

bool ChunkKernel::Usable() {
  return false;
}
ChunkKernel::ChunkKernel() : accumulators_{} {}
void ChunkKernel::Lines(std::byte*, const std::byte*, size_t lines, const std::byte*) {
  line_ += lines;
}
uint64_t ChunkKernel::Finish() const {
  return accumulators_[0];
}

#endif

}  // namespace pando
