// Memory in words of 32 bits, for many small pieces that come and go in any order.
//
//   4 words   free ─► piece ─► piece      a class for each multiple of 4 words up to kSmallWords;
//   8 words   free ─► piece               its pieces are carved from slabs and used again
//   ...                                   larger ones are malloc's
//
// To give a small piece back touches its first words and nothing else, while malloc joins it with
// its neighbours in memory, which are seldom near the processor. Slabs stay until the pool goes. No
// exception: null means no memory. Threads: owner thread only.
#ifndef PANDO_RADIX_POOL_WORD_POOL_H_
#define PANDO_RADIX_POOL_WORD_POOL_H_

#include <array>
#include <cstdint>

namespace pando {

class WordPool {
 public:
  WordPool() = default;
  ~WordPool();
  WordPool(const WordPool&) = delete;
  WordPool& operator=(const WordPool&) = delete;

  // `words` > 0.
  uint32_t* Take(uint64_t words);
  // A piece that Take gave for as many words.
  void Give(uint32_t* piece, uint64_t words);

  // Of all slabs, and of the large pieces that are in use.
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kStep = 4;
  static constexpr uint64_t kSmallWords = 128;
  static constexpr uint64_t kSlabWords = 4096;

  union Piece {
    Piece* next;
    uint32_t words[kStep];
  };
  struct Class {
    Piece* free = nullptr;
    uint32_t* fresh = nullptr;  // the newest slab's words that were never used
    uint64_t fresh_words = 0;
  };
  struct Slab {
    Slab* older;
    uint64_t pad;  // so that pieces are aligned as malloc's are
  };

  bool AddSlab(Class* of);

  std::array<Class, kSmallWords / kStep> classes_{};
  Slab* slabs_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_POOL_WORD_POOL_H_
