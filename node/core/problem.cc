#include "node/core/problem.h"

namespace pando {
namespace {

// Length of the well-formed UTF-8 character that `bytes` begin with; 0: none, or a control one.
size_t CharacterBytes(std::string_view bytes) {
  const auto at = [bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = at(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90)) return 0;  // overlong
  if ((first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f)) return 0;  // no such
  if (first == 0xc2 && second < 0xa0) return 0;                                        // control
  return length;
}

}  // namespace

std::string Quotable(std::string_view bytes, size_t limit) {
  std::string quotable;
  while (!bytes.empty()) {
    const size_t length = CharacterBytes(bytes);
    const size_t taken = length == 0 ? 1 : length;
    if (quotable.size() + taken > limit) return quotable + "...";
    length == 0 ? quotable.append(1, '?') : quotable.append(bytes.substr(0, length));
    bytes.remove_prefix(taken);
  }
  return quotable;
}

Problem OverLimit(std::string_view what, uint64_t found, uint64_t allowed, std::string_view where,
                  std::string_view advice) {
  return {Code::kLimit,
          Text(found, " ", what, " found, at most ", allowed, " allowed ", where, ": ", advice)};
}

Answer Refusal(Problem problem) {
  return {problem.code, std::move(problem.message), std::monostate{}};
}

}  // namespace pando
