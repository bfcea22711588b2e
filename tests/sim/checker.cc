#include "tests/sim/checker.h"

#include <utility>

namespace pando::sim {

void Checker::Fail(std::string what) {
  ++failures_;
  if (first_.size() < 10) first_.push_back(std::move(what));
}

void Checker::Add(const std::string& text) {
  Add(text.size());
  for (char c : text) Add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
}

void Checker::Add(const Answer& answer) {
  Add(static_cast<uint64_t>(answer.code));
  Add(answer.message);
  Add(answer.body.index());
  if (const auto* acquire = std::get_if<AcquireAnswer>(&answer.body)) {
    Add(acquire->claim.value());
    Add(acquire->blocks);
    Add(acquire->in_flight);
  } else if (const auto* reserve = std::get_if<ReserveAnswer>(&answer.body)) {
    Add(reserve->claim.value());
    Add(reserve->from);
    Add(reserve->to);
    Add(uint64_t{reserve->in_flight} << 1 | uint64_t{reserve->full});
  } else if (const auto* begin = std::get_if<BeginAnswer>(&answer.body)) {
    for (const BeginItem& item : begin->items) {
      Add(static_cast<uint64_t>(item.code));
      for (size_t i = 0; i < item.pages.size(); ++i) {
        Add(uint64_t{item.pages[i].value()} << 32 | item.generations[i].value());
      }
      for (uint64_t checksum : item.checksums) Add(checksum);
    }
  } else if (const auto* end = std::get_if<EndAnswer>(&answer.body)) {
    for (Code code : end->codes) Add(static_cast<uint64_t>(code));
  }
}

void Checker::Add(const Output& output) {
  Add(output.index());
  if (const auto* send = std::get_if<SendAnswer>(&output)) {
    Add(send->session.value());
    Add(send->serial);
    Add(send->answer);
  } else if (const auto* close = std::get_if<CloseSession>(&output)) {
    Add(close->session.value());
  } else if (const auto* log = std::get_if<LogLine>(&output)) {
    Add(log->event);
    for (const auto& [name, value] : log->fields) {
      Add(name);
      Add(value);
    }
  }
}

}  // namespace pando::sim
