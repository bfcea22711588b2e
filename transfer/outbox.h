// What a transfer engine has to say to its owner: the tables put it in, the engine takes it out.
// Whoever runs the engine's tables owns it; no thread of its own.
#ifndef PANDO_TRANSFER_OUTBOX_H_
#define PANDO_TRANSFER_OUTBOX_H_

#include <vector>

#include "transfer/engine.h"

namespace pando::transfer {

struct Outbox {
  std::vector<TransferEvent> events;
  TransferCounters counters;
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_OUTBOX_H_
