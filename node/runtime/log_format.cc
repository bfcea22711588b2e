#include "node/runtime/log_format.h"

#include <algorithm>

namespace pando::runtime {
namespace {

constexpr size_t kValueBytesMax = 1024;

bool IsPlain(char c) {
  return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
}

void AppendEscaped(char c, std::string* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out->push_back('\\');
    out->push_back(c);
  } else if (byte >= ' ' && byte < 0x7f) {
    out->push_back(c);
  } else {
    out->append("\\x");
    out->push_back(kHex[byte >> 4]);
    out->push_back(kHex[byte & 15]);
  }
}

}  // namespace

void AppendValue(std::string_view value, std::string* out) {
  const std::string_view kept = value.substr(0, kValueBytesMax);
  if (!kept.empty() && std::all_of(kept.begin(), kept.end(), IsPlain)) {
    out->append(kept);
    return;
  }
  out->push_back('"');
  for (const char c : kept) AppendEscaped(c, out);
  out->push_back('"');
}

std::string FormatLine(const LogLine& line) {
  std::string text = line.event;
  for (const auto& [key, value] : line.fields) {
    text.push_back(' ');
    text.append(key);
    text.push_back('=');
    AppendValue(value, &text);
  }
  return text;
}

}  // namespace pando::runtime
