// The core's counters by name, once, for all who print them. Immutable.
#ifndef PANDO_NODE_CONTROL_COUNTERS_H_
#define PANDO_NODE_CONTROL_COUNTERS_H_

#include <array>
#include <cstdint>

#include "node/core/node_core.h"

namespace pando::control {

struct NamedCounter {
  const char* name;
  const char* help;
  uint64_t CoreCounters::*value;
};

inline constexpr std::array kCounters = {
    NamedCounter{"steps", "Steps of the core", &CoreCounters::steps},
    NamedCounter{"acquires", "Acquire requests executed", &CoreCounters::acquires},
    NamedCounter{"probes", "Probe requests executed", &CoreCounters::probes},
    NamedCounter{"reserves", "Reserve requests executed", &CoreCounters::reserves},
    NamedCounter{"begins", "Begin requests executed", &CoreCounters::begins},
    NamedCounter{"ends", "End requests executed", &CoreCounters::ends},
    NamedCounter{"aborts", "Abort requests executed", &CoreCounters::aborts},
    NamedCounter{"settles", "Settle requests executed", &CoreCounters::settles},
    NamedCounter{"attach_refused", "Attach requests refused", &CoreCounters::attach_refused},
    NamedCounter{"requests_refused", "Other requests refused", &CoreCounters::requests_refused},
    NamedCounter{"requests_expired", "Requests that came past their deadline",
                 &CoreCounters::requests_expired},
    NamedCounter{"claims_expired", "Claims that ended at their deadline",
                 &CoreCounters::claims_expired},
    NamedCounter{"pages_loaded", "Pages whose load ended well", &CoreCounters::pages_loaded},
    NamedCounter{"pages_stored", "Pages committed", &CoreCounters::pages_stored},
    NamedCounter{"pages_bad", "Pages that a load found bad, and dropped", &CoreCounters::pages_bad},
    NamedCounter{"pages_given_up", "Pages of stores that failed or came too late",
                 &CoreCounters::pages_given_up},
    NamedCounter{"reserve_full", "Reserve requests that found no free page",
                 &CoreCounters::reserve_full},
    NamedCounter{"reserve_in_flight", "Reserve requests that met another writer",
                 &CoreCounters::reserve_in_flight},
    NamedCounter{"quarantine_refused", "Claims refused to replicas over their quarantine cap",
                 &CoreCounters::quarantine_refused},
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_COUNTERS_H_
