#include "client/steps.h"

namespace pando::client {

const std::array<std::string_view, kStepCount>& StepNames() {
  static constexpr std::array<std::string_view, kStepCount> kNames = {
      "client.attach_sent",    "client.attached",       "client.extents_mapped",
      "client.acquire_queued", "client.acquired",       "client.awaited",
      "client.probed",         "client.reserve_queued", "client.reserved",
      "client.begin_queued",   "client.begun",          "client.load_checking",
      "client.page_loaded",    "client.page_stored",    "client.end_queued",
      "client.ended",          "client.abort_queued",   "client.settle_queued",
      "client.settled",        "client.frame_sent",     "client.lost",
      "client.unmapped"};
  return kNames;
}

}  // namespace pando::client
