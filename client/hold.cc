#include <utility>

#include "client/client.h"
#include "client/hold_state.h"

namespace pando::client {
namespace {

// Counts a running copy, for as long as it lives.
class Running {
 public:
  explicit Running(std::atomic<int>* count) : count_(count) { count_->fetch_add(1); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { count_->fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<int>* const count_;
};

}  // namespace

HoldState::HoldState(std::shared_ptr<const SessionMemory> session_memory, size_t page_count)
    : memory(std::move(session_memory)), pages(page_count) {}

HoldState::~HoldState() {
  if (ended) return;
  memory->returns()->Add({store ? Return::Kind::kEndStore : Return::Kind::kEndLoad, claim.id});
}

bool HoldState::live() const {
  return !control.stop.load(std::memory_order_acquire) && !memory->fork()->forked();
}

bool HoldState::Copyable(uint32_t i) const {
  return i < pages.size() && live();
}

Hold::Hold() = default;
Hold::Hold(Hold&&) noexcept = default;
Hold& Hold::operator=(Hold&&) noexcept = default;
Hold::~Hold() = default;

Claim Hold::claim() const {
  return state_ ? state_->claim : Claim{};
}
bool Hold::store() const {
  return state_ && state_->store;
}
uint32_t Hold::first_block() const {
  return state_ ? state_->first_block : 0;
}
uint32_t Hold::pages() const {
  return state_ ? static_cast<uint32_t>(state_->pages.size()) : 0;
}
uint64_t Hold::page_bytes() const {
  return state_ ? state_->page_bytes : 0;
}
bool Hold::live() const {
  return state_ && state_->live();
}

void Hold::Stop() {
  if (state_) state_->control.stop.store(true, std::memory_order_release);
}

bool Hold::Load(uint32_t i, std::span<const std::span<std::byte>> pieces) {
  const std::shared_ptr<HoldState> state = state_;  // keeps the mapping while the copy runs
  if (!state || state->store || !state->Copyable(i)) return false;
  const Running running(&state->running);
  HoldPage& page = state->pages[i];
  page.state.store(PageState::kCopying, std::memory_order_relaxed);
  const std::optional<uint64_t> checksum = ScatterFromPage(
      std::span<const std::byte>(page.bytes, state->page_bytes), pieces, &state->control);
  Reached(state->steps, Step::kLoadChecking);
  const bool good = checksum && *checksum == page.checksum;
  page.state.store(good       ? PageState::kGood
                   : checksum ? PageState::kBad
                              : PageState::kFailed,
                   std::memory_order_release);
  if (good) Reached(state->steps, Step::kPageLoaded);
  return good;
}

bool Hold::Store(uint32_t i, std::span<const std::span<const std::byte>> pieces) {
  const std::shared_ptr<HoldState> state = state_;
  if (!state || !state->store || !state->Copyable(i)) return false;
  const Running running(&state->running);
  HoldPage& page = state->pages[i];
  page.state.store(PageState::kCopying, std::memory_order_relaxed);
  const std::optional<uint64_t> checksum =
      GatherToPage(pieces, std::span<std::byte>(page.bytes, state->page_bytes), &state->control);
  if (checksum) page.checksum = *checksum;
  page.state.store(checksum ? PageState::kGood : PageState::kFailed, std::memory_order_release);
  if (checksum) Reached(state->steps, Step::kPageStored);
  return checksum.has_value();
}

}  // namespace pando::client
