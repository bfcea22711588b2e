// The named steps of a client (radix/base/steps.h): a kill test stops a replica at one of them.
#ifndef PANDO_CLIENT_STEPS_H_
#define PANDO_CLIENT_STEPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "radix/base/steps.h"

namespace pando::client {

enum class Step : uint8_t {
  kAttachSent,  // handed to the socket
  kAttached,
  kExtentsMapped,  // those of one frame
  kAcquireQueued,  // in the frame that goes next
  kAcquired,       // the answer is here, with a claim or without
  kAwaited,
  kProbed,
  kReserveQueued,
  kReserved,
  kBeginQueued,
  kBegun,         // holds exist
  kLoadChecking,  // a page's bytes are with the engine, the checksum is not compared yet
  kPageLoaded,
  kPageStored,
  kEndQueued,
  kEnded,
  kAbortQueued,
  kSettleQueued,
  kSettled,
  kFrameSent,  // a frame was handed to the socket, whole or in part
  kLost,       // the session is over, its holds are told to stop
  kUnmapped,   // no mapping of the lost session is left
};

inline constexpr size_t kStepCount = static_cast<size_t>(Step::kUnmapped) + 1;

// In the order of the enum.
const std::array<std::string_view, kStepCount>& StepNames();

// `steps` may be null.
inline void Reached(StepListener* steps, Step step) {
  if (steps != nullptr) steps->Reached(StepNames()[static_cast<size_t>(step)]);
}

}  // namespace pando::client

#endif  // PANDO_CLIENT_STEPS_H_
