#include "tests/sim/faults.h"

#include <algorithm>
#include <array>

namespace pando::sim {
namespace {

constexpr std::array<std::string_view, kFaults> kNames{
    "crash",  "drain", "stall",  "jump", "freeze",  "partition", "reset",
    "slow",   "lose",  "repeat", "late", "corrupt", "lie",       "death",
    "socket", "hang",  "forget", "bad",  "haste",   "misuse",    "scarce"};
static_assert(static_cast<size_t>(Fault::kScarce) + 1 == kFaults);

}  // namespace

std::string_view FaultName(Fault fault) {
  return kNames[static_cast<size_t>(fault)];
}

std::string FaultNames() {
  return Text(FaultSet().set());
}

std::optional<FaultSet> ParseFaults(std::string_view list) {
  if (list == "all") return FaultSet().set();
  FaultSet faults;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(','));
    const auto* const it = std::find(kNames.begin(), kNames.end(), name);
    if (it == kNames.end()) return std::nullopt;
    faults.set(static_cast<size_t>(it - kNames.begin()));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
  }
  return faults;
}

std::string Text(const FaultSet& faults) {
  std::string text;
  for (size_t i = 0; i < kFaults; ++i) {
    if (faults.test(i)) text.append(text.empty() ? "" : ",").append(kNames[i]);
  }
  return text;
}

}  // namespace pando::sim
