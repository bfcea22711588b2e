#include "node/core/steps.h"

#include <array>

namespace pando {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(CoreStep::kFetchFinished) + 1> kNames{
    "session.opened",     "attach.accepted", "attach.refused",  "session.replaced",
    "replica.complete",   "acquire.matched", "acquire.leased",  "reserve.placed",
    "reserve.full",       "begin.held",      "end.committed",   "end.released",
    "claim.finished",     "claim.expired",   "claim.aborted",   "claim.lost",
    "quarantine.entered", "quarantine.left", "session.closed",  "process.exited",
    "replica.gone",       "settle.counted",  "settle.by_node",  "extent.added",
    "drain.started",      "ticket.issued",   "ticket.answered", "grant.given",
    "grant.ended",        "fetch.started",   "fetch.pulling",   "fetch.finished",
};
static_assert(!kNames.back().empty(), "every step has a name");

}  // namespace

std::span<const std::string_view> CoreStepNames() {
  return kNames;
}

std::string_view CoreStepName(CoreStep step) {
  return kNames[static_cast<size_t>(step)];
}

}  // namespace pando
