// Where an answer is put for its Call. The session keeps a weak reference, so that a Call that was
// dropped is seen as such.
//
//   waiting ──► ready (answered, or lost) ──► taken
//
// What was answered and never taken is given back when the slot goes.
#ifndef PANDO_CLIENT_CALL_SLOT_H_
#define PANDO_CLIENT_CALL_SLOT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "client/client.h"
#include "client/returns.h"

namespace pando::client {

// What an answer brought and nobody wants. Holds give themselves back when they go.
template <class Result>
void GiveBack(const Result& result, Returns* returns) {
  if constexpr (requires { result.claim; }) {
    if (result.claim) returns->Add({Return::Kind::kAbort, result.claim.id});
  }
}

template <class Result>
struct CallSlot {
  CallSlot(int64_t call_deadline, std::shared_ptr<Returns> session_returns)
      : deadline(call_deadline), returns(std::move(session_returns)) {}
  CallSlot(const CallSlot&) = delete;
  CallSlot& operator=(const CallSlot&) = delete;
  ~CallSlot() {
    if (ready && !taken && returns) GiveBack(result, returns.get());
  }

  Result result;
  bool ready = false;
  bool taken = false;
  const int64_t deadline;
  const std::shared_ptr<Returns> returns;  // null: there is no session
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_CALL_SLOT_H_
