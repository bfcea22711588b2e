// The core's counters by name, once, for all who print them. Immutable.
#ifndef PANDO_NODE_CONTROL_COUNTERS_H_
#define PANDO_NODE_CONTROL_COUNTERS_H_

#include <array>
#include <cstdint>

#include "node/core/node_core.h"

namespace pando::control {

// Counters of one name stand together, have one help text, and sum to all that it speaks of.
struct NamedCounter {
  const char* name;
  const char* reason;  // tells counters of one name apart; empty: it stands alone
  const char* help;
  uint64_t (*value)(const CoreCounters&);
};

namespace counters_detail {

using C = CoreCounters;

// A member of the counters, or of a member of theirs.
template <auto member, auto... inner>
uint64_t Of(const C& c) {
  return ((c.*member).*....*inner);
}
template <RefusedOutside::What what>
uint64_t Outside(const C& c) {
  return c.refused_outside[static_cast<size_t>(what)];
}

using What = RefusedOutside::What;

inline constexpr const char* kAttach =
    "Attach requests that were answered with a refusal, by the answer's code";
inline constexpr const char* kRequests =
    "Other requests that were answered with a refusal, by code; in Begin and End each claim counts";
inline constexpr const char* kFrames =
    "Frames that could not be read, by reason; cut_short: the connection ended within one";
inline constexpr const char* kMessages =
    "Messages refused before they were a request of the core, by reason; not in the requests";
inline constexpr const char* kGrantRequests =
    "Requests of peers for pages, by answer: given, missed (the pages are not here, or not any "
    "more), busy (at a limit), refused (wrong in form, or of nobody who said hello)";

}  // namespace counters_detail

inline constexpr auto kCounters = [] {
  using namespace counters_detail;
  return std::array{
      NamedCounter{"steps", "", "Inputs that the core took: requests, sessions, extents, time",
                   Of<&C::steps>},
      NamedCounter{"acquires", "", "Acquire requests looked at, refused ones included",
                   Of<&C::acquires>},
      NamedCounter{"awaits", "", "Await requests looked at, refused ones included", Of<&C::awaits>},
      NamedCounter{"probes", "", "Probe requests looked at, refused ones included", Of<&C::probes>},
      NamedCounter{"reserves", "", "Reserve requests looked at, refused ones included",
                   Of<&C::reserves>},
      NamedCounter{"begins", "", "Begin requests looked at, refused ones included", Of<&C::begins>},
      NamedCounter{"ends", "", "End requests looked at, refused ones included", Of<&C::ends>},
      NamedCounter{"aborts", "", "Abort requests looked at, refused ones included", Of<&C::aborts>},
      NamedCounter{"settles", "", "Settle requests looked at, refused ones included",
                   Of<&C::settles>},
      NamedCounter{"attach_refused", "invalid", kAttach,
                   Of<&C::attach_refused, &RefusedByCode::invalid>},
      NamedCounter{"attach_refused", "limit", kAttach,
                   Of<&C::attach_refused, &RefusedByCode::limit>},
      NamedCounter{"attach_refused", "unknown", kAttach,
                   Of<&C::attach_refused, &RefusedByCode::unknown>},
      NamedCounter{"attach_refused", "unavailable", kAttach,
                   Of<&C::attach_refused, &RefusedByCode::unavailable>},
      NamedCounter{"requests_refused", "invalid", kRequests,
                   Of<&C::requests_refused, &RefusedByCode::invalid>},
      NamedCounter{"requests_refused", "limit", kRequests,
                   Of<&C::requests_refused, &RefusedByCode::limit>},
      NamedCounter{"requests_refused", "unknown", kRequests,
                   Of<&C::requests_refused, &RefusedByCode::unknown>},
      NamedCounter{"requests_refused", "unavailable", kRequests,
                   Of<&C::requests_refused, &RefusedByCode::unavailable>},
      NamedCounter{"connections_refused", "", "Connections refused, with sessions at their limit",
                   Outside<What::kConnection>},
      NamedCounter{"frames_refused", "too_long", kFrames, Outside<What::kFrameTooLong>},
      NamedCounter{"frames_refused", "malformed", kFrames, Outside<What::kFrameMalformed>},
      NamedCounter{"frames_refused", "too_many_messages", kFrames,
                   Outside<What::kFrameTooManyMessages>},
      NamedCounter{"frames_refused", "cut_short", kFrames, Outside<What::kFrameCutShort>},
      NamedCounter{"messages_refused", "malformed", kMessages, Outside<What::kMessageMalformed>},
      NamedCounter{"messages_refused", "wrong_pidfd", kMessages, Outside<What::kMessageWrongPidfd>},
      NamedCounter{"messages_refused", "no_descriptor", kMessages,
                   Outside<What::kMessageNoDescriptor>},
      NamedCounter{"messages_refused", "answer_too_long", kMessages,
                   Outside<What::kMessageAnswerTooLong>},
      NamedCounter{"requests_expired", "", "Requests not executed: they came past their deadline",
                   Of<&C::requests_expired>},
      NamedCounter{"claims_expired", "",
                   "Claims (leases, reservations) that ended at their deadline",
                   Of<&C::claims_expired>},
      NamedCounter{"pages_loaded", "", "Pages of loads that ended well, each time they are loaded",
                   Of<&C::pages_loaded>},
      NamedCounter{"pages_stored", "", "Pages committed by stores", Of<&C::pages_stored>},
      NamedCounter{"pages_bad", "", "Pages that a load found bad and that were dropped, each once",
                   Of<&C::pages_bad>},
      NamedCounter{
          "pages_given_up", "",
          "Pages that a shard began to store and did not commit: failed, too late, given up",
          Of<&C::pages_given_up>},
      NamedCounter{"reserve_full", "", "Reserve requests that found no page to be had",
                   Of<&C::reserve_full>},
      NamedCounter{"reserve_in_flight", "",
                   "Reserve requests whose first missing block another replica was writing",
                   Of<&C::reserve_in_flight>},
      NamedCounter{"quarantine_refused", "",
                   "Acquire and Reserve requests that got no claim: their replica was over its "
                   "quarantine cap",
                   Of<&C::quarantine_refused>},
      NamedCounter{"tickets", "",
                   "Tickets given: an acquire found that somebody else makes what it missed",
                   Of<&C::tickets>},
      NamedCounter{"grant_requests", "given", kGrantRequests, Of<&C::grants>},
      NamedCounter{"grant_requests", "missed", kGrantRequests, Of<&C::grants_missed>},
      NamedCounter{"grant_requests", "busy", kGrantRequests, Of<&C::grants_busy>},
      NamedCounter{"grant_requests", "refused", kGrantRequests, Of<&C::grants_refused>},
      NamedCounter{"grants_expired", "", "Grants that ended at their deadline, not by a Done",
                   Of<&C::grants_expired>},
      NamedCounter{"peer_pages_sent", "", "Pages that peers pulled from here",
                   Of<&C::peer_pages_sent>},
      NamedCounter{"peer_pages_called_bad", "",
                   "Pages sent whose receiver says that their checksum was wrong",
                   Of<&C::peer_pages_called_bad>},
      NamedCounter{"fetches", "", "Fetches begun: blocks that a request missed and peers hold",
                   Of<&C::fetches>},
      NamedCounter{"fetches_declined", "",
                   "Fetches not begun because computing is faster, as far as is measured",
                   Of<&C::fetches_declined>},
      NamedCounter{"fetches_full", "", "Fetches not begun because no page was to be had",
                   Of<&C::fetches_full>},
      NamedCounter{"fetches_expired", "",
                   "Fetches that ended at their deadline; what had come by then stays",
                   Of<&C::fetches_expired>},
      NamedCounter{"peer_pages_stored", "", "Pages that came from peers and were committed",
                   Of<&C::peer_pages_stored>},
      NamedCounter{"feeds_broken", "",
                   "Feeds of peers that had a gap, a wrong digest or no sense, and were taken anew",
                   Of<&C::feeds_broken>},
  };
}();

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_COUNTERS_H_
