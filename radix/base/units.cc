#include "radix/base/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <limits>

namespace pando {
namespace {

constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

// The power of 1024 that `unit` (lower case) stands for, or nullopt.
std::optional<unsigned> PowerOf(std::string_view unit) {
  if (unit.empty() || unit == "b") return 0;
  constexpr std::string_view kLetters = "kmgt";
  const size_t letter = kLetters.find(unit[0]);
  if (letter == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return std::nullopt;
  return static_cast<unsigned>(letter) + 1;
}

}  // namespace

std::optional<Bytes> ParseBytes(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest == text.data()) return std::nullopt;
  std::string unit;
  for (const char* c = rest; c != end; ++c) {
    if (*c == ' ' && unit.empty()) continue;
    unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(*c))));
  }
  const std::optional<unsigned> power = PowerOf(unit);
  if (!power) return std::nullopt;
  const unsigned shift = *power * 10;
  if (shift > 0 && number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return Bytes(number << shift);
}

std::string FormatBytes(Bytes bytes) {
  auto value = static_cast<double>(bytes.value());
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace pando
