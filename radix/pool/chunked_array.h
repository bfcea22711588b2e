// An array that grows without moving what it holds: fixed chunks behind a small directory.
//
//   directory ──► [ chunk 0 ][ chunk 1 ][ chunk 2 ] ...     2^kChunkBits elements each
//
// So growing costs one chunk, however large the array is, and references stay valid. It never
// shrinks. No exception: EnsureSize says false and has changed nothing. Threads: owner thread only.
#ifndef PANDO_RADIX_POOL_CHUNKED_ARRAY_H_
#define PANDO_RADIX_POOL_CHUNKED_ARRAY_H_

#include <cstdint>
#include <cstring>
#include <new>

namespace pando {

template <class T, uint32_t kChunkBits = 10>
class ChunkedArray {
 public:
  ChunkedArray() = default;
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;
  ~ChunkedArray() {
    for (uint32_t i = 0; i < chunks_; ++i) delete[] directory_[i];
    delete[] directory_;
  }

  T& operator[](uint32_t i) { return directory_[i >> kChunkBits][i & kMask]; }
  const T& operator[](uint32_t i) const { return directory_[i >> kChunkBits][i & kMask]; }

  // Makes the elements below `size` exist, value-initialised.
  [[nodiscard]] bool EnsureSize(uint64_t size) {
    while (this->size() < size) {
      if (chunks_ == directory_size_ && !GrowDirectory()) return false;
      T* chunk = new (std::nothrow) T[kChunkSize]();
      if (chunk == nullptr) return false;
      directory_[chunks_++] = chunk;
    }
    return true;
  }

  uint64_t size() const { return uint64_t{chunks_} << kChunkBits; }
  uint64_t bytes() const { return size() * sizeof(T) + directory_size_ * sizeof(T*); }

 private:
  static constexpr uint32_t kChunkSize = 1u << kChunkBits;
  static constexpr uint32_t kMask = kChunkSize - 1;

  bool GrowDirectory() {
    const uint32_t size = directory_size_ == 0 ? 8 : directory_size_ * 2;
    T** directory = new (std::nothrow) T*[size];
    if (directory == nullptr) return false;
    if (chunks_ > 0) std::memcpy(directory, directory_, chunks_ * sizeof(T*));
    delete[] directory_;
    directory_ = directory;
    directory_size_ = size;
    return true;
  }

  T** directory_ = nullptr;
  uint32_t directory_size_ = 0;
  uint32_t chunks_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_POOL_CHUNKED_ARRAY_H_
