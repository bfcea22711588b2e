// Where an engine's own KV cache lies in this process, block by block.
//
//   block b of the engine  ─►  for each piece p, in order:  [base_p + b * stride_p, + bytes_p)
//
// A piece is what lies together of one block: mostly one layer's keys and values. The pieces of a
// block, in order, are one page. Immutable; any thread. The memory is the engine's: it must stay
// where it is as long as a copy may run.
#ifndef PANDO_CLIENT_PYTHON_KV_LAYOUT_H_
#define PANDO_CLIENT_PYTHON_KV_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pando::python {

struct KvPiece {
  uint64_t base = 0;    // address of block 0's
  uint64_t stride = 0;  // bytes from one block's to the next one's; at least `bytes`
  uint64_t bytes = 0;
};

class KvLayout {
 public:
  // Empty if it can be; else why not. At most 8 MiB a block, as a page.
  static std::string Check(const std::vector<KvPiece>& pieces, uint64_t blocks);

  KvLayout(std::vector<KvPiece> pieces, uint64_t blocks);

  uint64_t blocks() const { return blocks_; }
  uint64_t page_bytes() const { return page_bytes_; }
  size_t pieces() const { return pieces_.size(); }

  // The pieces of one block (less than blocks()), into `out`.
  void Pieces(uint64_t block, std::vector<std::span<std::byte>>* out) const;

  // Takes a pattern through all copies' way: block `from`'s pieces ─► a page ─► block `to`'s
  // pieces. True if it came out as it went in, with one checksum. What the blocks held is lost.
  bool SelfTest(uint64_t from, uint64_t to) const;

 private:
  std::vector<KvPiece> pieces_;
  uint64_t blocks_;
  uint64_t page_bytes_ = 0;
};

}  // namespace pando::python

#endif  // PANDO_CLIENT_PYTHON_KV_LAYOUT_H_
