// What a peer may say that is not so, without bytes that agree with it: numbers shifted, swapped,
// left out, of another page, version or life. (FAULTS G4) Changes its argument; one thread.
#ifndef PANDO_TESTS_SIM_LIES_H_
#define PANDO_TESTS_SIM_LIES_H_

#include "node/core/peer_messages.h"
#include "tests/sim/random.h"

namespace pando::sim {

void Lie(PeerAnswerBody* answer, Random* random);
void Lie(SendFeed* feed, Random* random);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_LIES_H_
