// The calls that the node has not answered yet, by serial. One that nobody waits for any more stays
// until its answer comes: an answer to anything else is a lie.
#ifndef PANDO_CLIENT_PENDING_H_
#define PANDO_CLIENT_PENDING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "client/call_slot.h"
#include "client/steps.h"

namespace pando::client {

template <class Result>
using WeakSlot = std::weak_ptr<CallSlot<Result>>;

struct AttachCall {};
struct AcquireCall {
  using Result = AcquireResult;
  static constexpr Step kAnswered = Step::kAcquired;
  WeakSlot<AcquireResult> slot;
  uint64_t tokens = 0;
  uint64_t request = 0;
};
struct AwaitCall {
  using Result = AwaitResult;
  static constexpr Step kAnswered = Step::kAwaited;
  WeakSlot<AwaitResult> slot;
};
struct ProbeCall {
  using Result = ProbeResult;
  static constexpr Step kAnswered = Step::kProbed;
  WeakSlot<ProbeResult> slot;
  uint64_t tokens = 0;
};
struct ReserveCall {
  using Result = ReserveResult;
  static constexpr Step kAnswered = Step::kReserved;
  WeakSlot<ReserveResult> slot;
  uint32_t to = 0;
};
struct BeginCall {
  using Result = BeginResult;
  static constexpr Step kAnswered = Step::kBegun;
  WeakSlot<BeginResult> slot;
  std::vector<uint64_t> claims;  // of this message
  // What the call's messages before this one brought, for all its claims: those with kLimit are the
  // ones that this message asks for again, in their order.
  BeginResult begun;
};
struct EndCall {
  using Result = EndResult;
  static constexpr Step kAnswered = Step::kEnded;
  WeakSlot<EndResult> slot;
  size_t items = 0;
};
struct AbortCall {};  // also an End of nothing: its answer says only that the node is there
struct SettleCall {
  using Result = SettleResult;
  static constexpr Step kAnswered = Step::kSettled;
  WeakSlot<SettleResult> slot;
};

struct Pending {
  int64_t deadline = INT64_MAX;
  bool waited = true;  // false once its deadline has passed
  std::variant<AttachCall, AcquireCall, AwaitCall, ProbeCall, ReserveCall, BeginCall, EndCall,
               AbortCall, SettleCall>
      call;
};

using PendingCalls = std::unordered_map<uint64_t, Pending>;

// The call is over without an answer. True if somebody waited for it.
bool Fail(Pending* pending, Code code, const std::string& message);

}  // namespace pando::client

#endif  // PANDO_CLIENT_PENDING_H_
