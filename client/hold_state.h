// What is behind a Hold: the pages of one claim, and what has become of each.
//
//   page   kUntouched ──► kCopying ──► kGood | kBad (wrong checksum) | kFailed (stopped)
//
// If it goes without having been ended, it tells the session's Returns. Copies of different pages
// may run at once; `stop`, `live` and the page states are atomic, all else is immutable.
#ifndef PANDO_CLIENT_HOLD_STATE_H_
#define PANDO_CLIENT_HOLD_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/session_memory.h"
#include "client/steps.h"
#include "transfer/memory/page_copy.h"

namespace pando::client {

enum class PageState : uint8_t { kUntouched, kCopying, kGood, kBad, kFailed };

struct HoldPage {
  std::byte* bytes = nullptr;
  uint64_t checksum = 0;  // of a load: what was promised; of a store: of what was stored
  std::atomic<PageState> state = PageState::kUntouched;
};

struct HoldState {
  HoldState(std::shared_ptr<const SessionMemory> session_memory, size_t page_count);
  HoldState(const HoldState&) = delete;
  HoldState& operator=(const HoldState&) = delete;
  ~HoldState();

  bool live() const;
  bool Copyable(uint32_t i) const;
  // True unless a copy is running.
  bool Quiet() const { return running.load(std::memory_order_acquire) == 0; }

  const std::shared_ptr<const SessionMemory> memory;
  Claim claim;
  bool store = false;
  uint32_t first_block = 0;
  uint64_t page_bytes = 0;
  StepListener* steps = nullptr;
  std::vector<HoldPage> pages;

  CopyControl control;           // stop: by the engine, or because the session is lost
  std::atomic<int> running = 0;  // copies
  bool ended = false;            // the node was told, or there is none to tell
};

// The session's way into a Hold.
struct HoldAccess {
  static Hold Make(std::shared_ptr<HoldState> state) {
    Hold hold;
    hold.state_ = std::move(state);
    return hold;
  }
  static const std::shared_ptr<HoldState>& Look(const Hold& hold) { return hold.state_; }
  static std::shared_ptr<HoldState> Take(Hold* hold) { return std::move(hold->state_); }
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_HOLD_STATE_H_
