#include "client/ctl/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace pando::ctl {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: not valid UTF-8
};

// The character that the text, which is not empty, begins with.
Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {code, bytes};
}

bool Drives(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool separator = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return control || separator || direction;
}

std::string Escaped(std::string_view text, bool keep_newlines) {
  std::string out;
  while (!text.empty()) {
    const Character next = FirstOf(text);
    const std::string_view bytes = text.substr(0, next.bytes == 0 ? 1 : next.bytes);
    text.remove_prefix(bytes.size());
    if (next.bytes > 0 && (!Drives(next.code) || (keep_newlines && next.code == '\n'))) {
      out += bytes;
      continue;
    }
    for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) {
  return Escaped(text, /*keep_newlines=*/false);
}

std::string PrintableLines(std::string_view text) {
  return Escaped(text, /*keep_newlines=*/true);
}

}  // namespace pando::ctl
