// How often each operation has met a page in each state, for whoever asks what a test has come
// through. Plain data.
#ifndef PANDO_RADIX_BASE_PAGE_OPS_H_
#define PANDO_RADIX_BASE_PAGE_OPS_H_

#include <array>
#include <cstdint>

namespace pando {

// [PageState][PageOp] of radix/pages/page_table.h.
using PageOpCounts = std::array<std::array<uint64_t, 6>, 6>;

}  // namespace pando

#endif  // PANDO_RADIX_BASE_PAGE_OPS_H_
