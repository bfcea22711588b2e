#include "client/ctl/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/ctl/printable.h"

namespace pando::ctl {
namespace {

// Columns on the screen: bytes that begin a UTF-8 character.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {}

void Table::Row(std::vector<std::string> cells) {
  cells.resize(align_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<std::vector<std::string>> lines;
  if (!header_.empty()) lines.push_back(header_);
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<size_t> widths(align_.size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string space(widths[i] - Width(line[i]), ' ');
      if (i > 0) row += "  ";
      row += align_[i] == kRight ? space + line[i] : line[i] + space;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string Thousands(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(text.begin() + static_cast<ptrdiff_t>(at), ',');
  }
  return text;
}

std::string Counted(uint64_t value, const std::string& one, const std::string& many) {
  return Thousands(value) + " " + (value == 1 ? one : many);
}

std::string Percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.2f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Duration(uint64_t milliseconds) {
  const uint64_t seconds = milliseconds / 1000;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

}  // namespace pando::ctl
