// Non-temporal copies: bytes that nobody on this core reads again soon go past the caches, which
// saves the read of each destination line and leaves the caches to the engine.
//
//   destination  |..head..|== whole 64-byte lines, streamed ==|..tail..|
//
// Head and tail are stored ordinarily, so a line is never written both ways. Any sizes and
// alignments. Streamed stores are ordered by StreamFence only. Stateless; any thread.
#ifndef PANDO_TRANSFER_MEMORY_STREAM_COPY_H_
#define PANDO_TRANSFER_MEMORY_STREAM_COPY_H_

#include <cstddef>

namespace pando {

// Copies `size` bytes; the ranges do not overlap.
using StreamCopyFn = void (*)(std::byte* to, const std::byte* from, size_t size);

// The fastest one that this processor runs. Ask once, use often.
StreamCopyFn BestStreamCopy();

// After it, whoever sees a later store of this thread sees all that was streamed before.
void StreamFence();

namespace internal {

// The copies by name, fastest last, with whether this processor runs them: for tests.
struct StreamCopyKind {
  const char* name;
  StreamCopyFn copy;
  bool usable;
};
inline constexpr size_t kStreamCopyKinds = 4;
const StreamCopyKind* StreamCopyKinds();

}  // namespace internal
}  // namespace pando

#endif  // PANDO_TRANSFER_MEMORY_STREAM_COPY_H_
