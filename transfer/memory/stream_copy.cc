#include "transfer/memory/stream_copy.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define PANDO_TARGET(isa) __attribute__((target(isa)))
#endif

namespace pando {
namespace {

constexpr size_t kLine = 64;
// Below this, what is gained on the lines is lost on head and tail.
constexpr size_t kStreamMin = 4 * kLine;

void PlainCopy(std::byte* to, const std::byte* from, size_t size) {
  if (size != 0) std::memcpy(to, from, size);
}

#if defined(__x86_64__)

// Each of these streams `lines` whole lines to a 64-byte-aligned destination.

void StreamLinesSse2(std::byte* to, const std::byte* from, size_t lines) {
  for (; lines != 0; --lines, to += kLine, from += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
}

PANDO_TARGET("avx2")
void StreamLinesAvx2(std::byte* to, const std::byte* from, size_t lines) {
  for (; lines != 0; --lines, to += kLine, from += kLine) {
    const auto* source = reinterpret_cast<const __m256i*>(from);
    auto* target = reinterpret_cast<__m256i*>(to);
    const __m256i a = _mm256_loadu_si256(source);
    const __m256i b = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, a);
    _mm256_stream_si256(target + 1, b);
  }
}

PANDO_TARGET("avx512f")
void StreamLinesAvx512(std::byte* to, const std::byte* from, size_t lines) {
  for (; lines != 0; --lines, to += kLine, from += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

template <void (*StreamLines)(std::byte*, const std::byte*, size_t)>
void StreamCopy(std::byte* to, const std::byte* from, size_t size) {
  if (size < kStreamMin) return PlainCopy(to, from, size);
  const size_t head = -reinterpret_cast<uintptr_t>(to) % kLine;
  PlainCopy(to, from, head);
  const size_t lines = (size - head) / kLine;
  StreamLines(to + head, from + head, lines);
  const size_t done = head + lines * kLine;
  PlainCopy(to + done, from + done, size - done);
}

std::array<internal::StreamCopyKind, internal::kStreamCopyKinds> FindKinds() {
  __builtin_cpu_init();
  return {{{"plain", PlainCopy, true},
           {"sse2", StreamCopy<StreamLinesSse2>, true},
           {"avx2", StreamCopy<StreamLinesAvx2>, __builtin_cpu_supports("avx2") != 0},
           {"avx512", StreamCopy<StreamLinesAvx512>, __builtin_cpu_supports("avx512f") != 0}}};
}

#else

std::array<internal::StreamCopyKind, internal::kStreamCopyKinds> FindKinds() {
  return {{{"plain", PlainCopy, true},
           {"sse2", PlainCopy, false},
           {"avx2", PlainCopy, false},
           {"avx512", PlainCopy, false}}};
}

#endif

}  // namespace

namespace internal {

const StreamCopyKind* StreamCopyKinds() {
  static const std::array<StreamCopyKind, kStreamCopyKinds> kinds = FindKinds();
  return kinds.data();
}

}  // namespace internal

StreamCopyFn BestStreamCopy() {
  const internal::StreamCopyKind* kinds = internal::StreamCopyKinds();
  size_t best = internal::kStreamCopyKinds - 1;
  while (!kinds[best].usable) --best;  // the plain one always is
  return kinds[best].copy;
}

void StreamFence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
  std::atomic_thread_fence(std::memory_order_release);
}

}  // namespace pando
