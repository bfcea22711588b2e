// A stand-in for an engine's own paged KV cache: the KV of one block lies in several pieces, one a
// layer and K or V, far from each other.
//
//            slot 0   slot 1   ...
//   layer 0 K [piece]  [piece]
//   layer 0 V [piece]  [piece]         page = the pieces of one slot, in this order
//   layer 1 K [piece]  [piece]
//
// One thread.
#ifndef PANDO_CLIENT_CTL_ENGINE_KV_H_
#define PANDO_CLIENT_CTL_ENGINE_KV_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client/ctl/page_bytes.h"

namespace pando::ctl {

class EngineKv {
 public:
  explicit EngineKv(uint64_t page_bytes);

  uint32_t slots() const { return slots_; }
  // The pieces of a slot, in page order; sizes sum to page_bytes.
  std::span<const std::span<std::byte>> pieces(uint32_t slot) const;
  std::span<const std::span<const std::byte>> const_pieces(uint32_t slot) const;

  // "Computes" the KV of a block: writes what its page must hold.
  void Compute(uint32_t slot, const PageBytes& page);
  // Damages the slot, so that what an earlier block left there cannot pass for a load.
  void Spoil(uint32_t slot);
  // True if the slot holds exactly what the page must hold.
  bool Holds(uint32_t slot, const PageBytes& page) const;

 private:
  uint32_t slots_;
  uint32_t pieces_per_page_;
  std::vector<std::byte> memory_;
  std::vector<std::span<std::byte>> pieces_;  // slot by slot
  std::vector<std::span<const std::byte>> const_pieces_;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_ENGINE_KV_H_
