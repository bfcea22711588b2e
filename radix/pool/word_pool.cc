#include "radix/pool/word_pool.h"

#include <new>

namespace pando {

WordPool::~WordPool() {
  while (slabs_ != nullptr) {
    Slab* older = slabs_->older;
    ::operator delete(slabs_);
    slabs_ = older;
  }
}

bool WordPool::AddSlab(Class* of) {
  constexpr uint64_t kBytes = sizeof(Slab) + kSlabWords * sizeof(uint32_t);
  void* memory = ::operator new(kBytes, std::nothrow);
  if (memory == nullptr) return false;
  slabs_ = new (memory) Slab{.older = slabs_, .pad = 0};
  of->fresh = reinterpret_cast<uint32_t*>(slabs_ + 1);
  of->fresh_words = kSlabWords;
  bytes_ += kBytes;
  return true;
}

uint32_t* WordPool::Take(uint64_t words) {
  if (words > kSmallWords) {
    auto* large = new (std::nothrow) uint32_t[words];
    if (large != nullptr) bytes_ += words * sizeof(uint32_t);
    return large;
  }
  Class& of = classes_[(words - 1) / kStep];
  if (Piece* piece = of.free; piece != nullptr) {
    of.free = piece->next;
    return reinterpret_cast<uint32_t*>(piece);
  }
  const uint64_t size = ((words - 1) / kStep + 1) * kStep;
  if (of.fresh_words < size && !AddSlab(&of)) return nullptr;
  uint32_t* piece = of.fresh;
  of.fresh += size;
  of.fresh_words -= size;
  return piece;
}

void WordPool::Give(uint32_t* piece, uint64_t words) {
  if (words > kSmallWords) {
    bytes_ -= words * sizeof(uint32_t);
    delete[] piece;
    return;
  }
  Class& of = classes_[(words - 1) / kStep];
  of.free = new (piece) Piece{.next = of.free};
}

}  // namespace pando
