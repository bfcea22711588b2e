// One 4 KiB chunk copied and hashed in one pass: a line is loaded into registers, streamed to its
// place and added to the hash from there, so memory is never idle while the hash is computed, and
// the hash is of exactly the bytes that were stored.
//
//   ChunkKernel kernel;  kernel.Lines(to, from, 16, next);  kernel.Lines(...);  kernel.Finish();
//
// The value is XXH3-64 (seed 0) of the 4096 bytes. Needs AVX2 (`Usable`); page_copy.cc has the way
// for all other processors and for what is not whole lines. Not shared between threads.
#ifndef PANDO_TRANSFER_MEMORY_CHUNK_KERNEL_H_
#define PANDO_TRANSFER_MEMORY_CHUNK_KERNEL_H_

#include <cstddef>
#include <cstdint>

namespace pando {

inline constexpr size_t kLineBytes = 64;

class ChunkKernel {
 public:
  static bool Usable();

  ChunkKernel();
  // Copies the next `lines` of the chunk's 64 lines. `to` is aligned to a line; `next` is where the
  // source goes on afterwards, and is fetched ahead, never read.
  void Lines(std::byte* to, const std::byte* from, size_t lines, const std::byte* next);
  // After 64 lines.
  uint64_t Finish() const;

 private:
  alignas(64) uint64_t accumulators_[8];
  size_t line_ = 0;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_MEMORY_CHUNK_KERNEL_H_
