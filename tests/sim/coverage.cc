#include "tests/sim/coverage.h"

#include <algorithm>
#include <cstdio>
#include <span>

#include "radix/pages/page_table.h"

namespace pando::sim {
namespace {

constexpr std::array<std::string_view, kPageStates> kStates{"free",      "reserved", "receiving",
                                                            "committed", "held",     "quarantined"};
constexpr std::array<std::string_view, kPageOps> kOps{"Reserve", "Hold",          "Commit",
                                                      "Release", "Release, last", "Detach"};
constexpr std::array<std::string_view, 6> kCodes{"ok",      "invalid", "incompatible",
                                                 "unknown", "miss",    "busy"};
constexpr std::array<std::string_view, 6> kPulls{"ok",       "refused",   "unreachable",
                                                 "deadline", "cancelled", "overloaded"};
constexpr std::array<std::string_view, 3> kPages{"arrived", "bad", "failed"};

bool CanBe(size_t state, size_t op) {
  return NextPageState(static_cast<PageState>(state), static_cast<PageOp>(op)) != PageNext::kBroken;
}

template <class Counts>
void AddAll(Counts* sum, const Counts& more) {
  for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += more[i];
}

std::string Cell(std::string_view text) {
  std::string cell(text);
  cell.resize(std::max<size_t>(cell.size() + 1, 15), ' ');
  return cell;
}

void AppendRow(std::string_view title, std::span<const std::string_view> names,
               std::span<const uint64_t> counts, std::string* text) {
  text->append(title).append("\n");
  for (size_t i = 0; i < names.size(); ++i) {
    text->append("  ").append(Cell(names[i])).append(" ");
    text->append(counts[i] == 0 ? "never seen" : std::to_string(counts[i])).append("\n");
  }
}

using Seen = std::vector<std::pair<std::string, uint64_t>>;

void AppendNamed(const std::string& what, std::span<const std::string_view> names,
                 std::span<const uint64_t> counts, Seen* seen) {
  for (size_t i = 0; i < names.size(); ++i) {
    seen->emplace_back(what + " " + std::string(names[i]), counts[i]);
  }
}

}  // namespace

void Coverage::Reached(std::string_view step) {
  const std::span<const std::string_view> names = CoreStepNames();
  const auto it = std::find_if(names.begin(), names.end(),
                               [&](std::string_view name) { return name.data() == step.data(); });
  if (it != names.end()) ++counts_.steps[static_cast<size_t>(it - names.begin())];
}

void Coverage::Add(const Output& output) {
  const auto* answer = std::get_if<AnswerPeer>(&output);
  if (answer == nullptr) return;
  if (const auto* grant = std::get_if<GrantAnswer>(&answer->answer)) {
    ++counts_.grants[static_cast<size_t>(grant->code)];
  }
}

void Coverage::Add(const TransferEvent& event) {
  if (const auto* ended = std::get_if<PullEnded>(&event)) {
    ++counts_.pulls[static_cast<size_t>(ended->status)];
  } else if (const auto* pages = std::get_if<PullPages>(&event)) {
    for (const PullPages::Page& page : pages->pages)
      ++counts_.pages[static_cast<size_t>(page.outcome)];
  }
}

void Coverage::Counts::Add(const Counts& more) {
  for (size_t state = 0; state < kPageStates; ++state) {
    AddAll(&page_ops[state], more.page_ops[state]);
  }
  AddAll(&steps, more.steps);
  AddAll(&grants, more.grants);
  AddAll(&pulls, more.pulls);
  AddAll(&pages, more.pages);
}

std::string Coverage::Counts::Text() const {
  std::string text = "pages: state x operation (-: cannot be)\n  " + Cell("");
  for (const std::string_view op : kOps) text += Cell(op);
  for (size_t state = 0; state < kPageStates; ++state) {
    text += "\n  " + Cell(kStates[state]);
    for (size_t op = 0; op < kPageOps; ++op) {
      const uint64_t count = page_ops[state][op];
      text += Cell(count > 0 ? std::to_string(count) : CanBe(state, op) ? "never seen" : "-");
    }
  }
  text += "\n";
  AppendRow("steps of claims, holds, grants and fetches", CoreStepNames(), steps, &text);
  AppendRow("answers to grants", kCodes, grants, &text);
  AppendRow("ends of pulls", kPulls, pulls, &text);
  AppendRow("pages of pulls", kPages, pages, &text);
  return text;
}

std::vector<std::pair<std::string, uint64_t>> Coverage::Counts::Named() const {
  Seen seen;
  for (size_t state = 0; state < kPageStates; ++state) {
    for (size_t op = 0; op < kPageOps; ++op) {
      if (!CanBe(state, op)) continue;
      seen.emplace_back("page " + std::string(kStates[state]) + " x " + std::string(kOps[op]),
                        page_ops[state][op]);
    }
  }
  AppendNamed("step", CoreStepNames(), steps, &seen);
  AppendNamed("grant", kCodes, grants, &seen);
  AppendNamed("pull", kPulls, pulls, &seen);
  AppendNamed("pulled page", kPages, pages, &seen);
  return seen;
}

}  // namespace pando::sim
