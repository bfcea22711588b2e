// Sizes as people write them: "2GiB", "64 MiB", "4096". Any thread.
#ifndef PANDO_RADIX_BASE_UNITS_H_
#define PANDO_RADIX_BASE_UNITS_H_

#include <optional>
#include <string>
#include <string_view>

#include "radix/base/ids.h"

namespace pando {

// Reads a whole number with an optional unit: B, KiB, MiB, GiB, TiB (also K, M, G, T and KB, MB,
// GB, TB, all powers of 1024, any case, spaces before the unit allowed). nullopt if `text` is
// anything else or the value does not fit 64 bits.
std::optional<Bytes> ParseBytes(std::string_view text);

// "2.0 GiB", "64.0 MiB", "17 B": for people, one digit after the point.
std::string FormatBytes(Bytes bytes);

}  // namespace pando

#endif  // PANDO_RADIX_BASE_UNITS_H_
