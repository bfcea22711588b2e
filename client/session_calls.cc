// The half of Session that asks: checks, queues, and gives back.
#include <algorithm>
#include <utility>

#include "client/limits.h"
#include "client/session.h"

namespace pando::client {
namespace {

// All of a prompt but its tokens, which are copied straight into the frame.
pb::Prompt WithoutTokens(const Prompt& prompt) {
  pb::Prompt rest;
  for (const Segment& segment : prompt.segments) {
    pb::Segment* to = rest.add_segments();
    to->set_scope(segment.scope.data(), segment.scope.size());
    to->set_end(segment.end);
  }
  for (const Extra& extra : prompt.extras) {
    pb::Extra* to = rest.add_extras();
    to->set_block(extra.block);
    to->set_value(extra.bytes.data(), extra.bytes.size());
  }
  return rest;
}

void FillEnd(const HoldState& hold, pb::EndItem* item) {
  item->set_claim(hold.claim.id);
  size_t good = 0;
  for (size_t i = 0; i < hold.pages.size(); ++i) {
    const PageState state = hold.pages[i].state.load(std::memory_order_acquire);
    if (state == PageState::kGood) ++good;
    if (hold.store ? state != PageState::kGood : state == PageState::kBad) {
      item->add_bad_pages(static_cast<uint32_t>(i));
    }
  }
  if (!hold.store) return;
  if (good == 0) {
    item->clear_bad_pages();
    item->set_failed(true);
    return;
  }
  item->mutable_checksums()->reserve(hold.pages.size() * sizeof(uint64_t));
  for (const HoldPage& page : hold.pages) {
    item->mutable_checksums()->append(reinterpret_cast<const char*>(&page.checksum),
                                      sizeof(page.checksum));
  }
}

}  // namespace

void Session::Progress() {
  if (state_ != State::kAttached || Full()) Poll();
}

bool Session::Full() const {
  return channel_->queued_bytes() + writer_.bytes() > limits::kQueueBytes ||
         pending_.size() >= limits::kCallsOutstanding;
}

Objection Session::Unaskable(int64_t deadline) {
  Progress();
  switch (state()) {
    case State::kAttached:
      if (deadline > NowNanos()) return {};
      return {Code::kLost, "the deadline had passed before the call"};
    case State::kForked:
      return {Code::kUnavailable, "this process is a fork's child: it needs a client of its own"};
    case State::kRefused:
      return {Code::kUnavailable, last_error_};
    default:
      return {Code::kLost, last_error_.empty() ? "not attached to a node" : last_error_};
  }
}

// What is given back goes out also while the node is silent.
Objection Session::UnsendableRelease() {
  Progress();
  const State now = state();
  if (now == State::kAttached || now == State::kAbsent) return {};
  return Unaskable(0);
}

// Of a session before, or of none: the node would have to say the same.
Objection Session::CheckOpen(uint64_t request) const {
  if (requests_.contains(request)) return {};
  return {Code::kUnknown, "request " + std::to_string(request) +
                              " is not open: this session of the node has not acquired it"};
}

template <class Result>
Slot<Result> Session::NewSlot(int64_t deadline) {
  ++counters_.calls;
  return std::make_shared<CallSlot<Result>>(deadline, memory_ ? memory_->returns() : nullptr);
}

template <class Result>
Slot<Result> Session::Refused(const Objection& objection) {
  ++counters_.calls;
  ++(objection.code == Code::kLost ? counters_.calls_lost : counters_.calls_refused);
  auto slot = std::make_shared<CallSlot<Result>>(0, nullptr);
  slot->result.code = objection.code;
  slot->result.message = objection.message;
  slot->ready = true;
  return slot;
}

pb::ClientMessage Session::Head(int64_t deadline) {
  pb::ClientMessage head;
  head.set_serial(++last_serial_);
  head.set_deadline_ns(static_cast<uint64_t>(deadline));
  return head;
}

template <class Message>
bool Session::Queue(const Message& message, uint64_t serial, Pending pending) {
  if (Full()) return false;
  // A frame that cannot be sent because the connection has ended is noticed at the next Poll.
  if (!writer_.Add(message) && !(Send(UniqueFd()) && writer_.Add(message))) return false;
  if (pending.waited) next_deadline_ = std::min(next_deadline_, pending.deadline);
  pending_.emplace(serial, std::move(pending));
  return true;
}

template <class Message, class Result>
Slot<Result> Session::Ask(const Message& message, uint64_t serial, Pending pending,
                          Slot<Result> slot) {
  if (Queue(message, serial, std::move(pending))) return slot;
  ++counters_.calls_lost;
  ++counters_.calls_lost_full;
  slot->result.message = "too much is queued for the node already";
  slot->ready = true;
  return slot;
}

Slot<AcquireResult> Session::StartAcquire(uint64_t request, const Prompt& prompt,
                                          uint64_t engine_hit_tokens, int64_t claim_deadline,
                                          int64_t deadline, Intent intent, Account account) {
  Objection objection = CheckPrompt(prompt);
  if (objection.ok() && request == 0) objection = {Code::kInvalid, "request 0 is no request"};
  if (objection.ok() && engine_hit_tokens > prompt.tokens.size()) {
    objection = {Code::kInvalid, "the engine's own hit is longer than the prompt"};
  }
  if (objection.ok()) objection = Unaskable(deadline);
  if (!objection.ok()) return Refused<AcquireResult>(objection);
  const pb::ClientMessage head = Head(deadline);
  pb::Acquire body;
  body.set_request(request);
  body.set_engine_hit_tokens(engine_hit_tokens);
  body.set_claim_deadline_ns(static_cast<uint64_t>(claim_deadline));
  if (intent == Intent::kCompute) body.set_intent(pb::Acquire::COMPUTE);
  body.set_again(account == Account::kAgain);
  const pb::Prompt rest = WithoutTokens(prompt);
  const TokenMessage message = {&head,
                                &body,
                                pb::ClientMessage::kAcquireFieldNumber,
                                &rest,
                                pb::Acquire::kPromptFieldNumber,
                                pb::Prompt::kTokensFieldNumber,
                                prompt.tokens};
  auto slot = NewSlot<AcquireResult>(deadline);
  Pending pending{deadline, true, AcquireCall{slot, prompt.tokens.size(), request}};
  slot = Ask(message, head.serial(), std::move(pending), std::move(slot));
  if (!slot->ready) requests_.try_emplace(request, head.serial());
  Reached(options_.steps, Step::kAcquireQueued);
  return slot;
}

Slot<AwaitResult> Session::StartAwait(uint64_t ticket, int64_t until, int64_t deadline) {
  Objection objection = Unaskable(deadline);
  if (objection.ok() && until >= deadline) {
    objection = {Code::kInvalid, "an await until its own deadline or later has no time to answer"};
  }
  if (!objection.ok()) return Refused<AwaitResult>(objection);
  pb::ClientMessage message = Head(deadline);
  message.mutable_await()->set_ticket(ticket);
  message.mutable_await()->set_until_ns(static_cast<uint64_t>(std::max<int64_t>(until, 0)));
  auto slot = NewSlot<AwaitResult>(deadline);
  Pending pending{deadline, true, AwaitCall{slot}};
  return Ask(message, message.serial(), std::move(pending), std::move(slot));
}

Slot<ProbeResult> Session::StartProbe(const Prompt& prompt, int64_t deadline) {
  Objection objection = CheckPrompt(prompt);
  if (objection.ok()) objection = Unaskable(deadline);
  if (!objection.ok()) return Refused<ProbeResult>(objection);
  const pb::ClientMessage head = Head(deadline);
  const pb::Probe body;
  const pb::Prompt rest = WithoutTokens(prompt);
  const TokenMessage message = {&head,
                                &body,
                                pb::ClientMessage::kProbeFieldNumber,
                                &rest,
                                pb::Probe::kPromptFieldNumber,
                                pb::Prompt::kTokensFieldNumber,
                                prompt.tokens};
  auto slot = NewSlot<ProbeResult>(deadline);
  Pending pending{deadline, true, ProbeCall{slot, prompt.tokens.size()}};
  return Ask(message, head.serial(), std::move(pending), std::move(slot));
}

Slot<ReserveResult> Session::StartReserve(uint64_t request, const Prompt& prompt,
                                          std::span<const uint32_t> append_tokens, uint32_t from,
                                          uint32_t to, int64_t claim_deadline, int64_t deadline) {
  Objection objection = request == 0 ? CheckPrompt(prompt) : CheckTokenCount(append_tokens.size());
  if (objection.ok() && from > to) {
    objection = {Code::kInvalid,
                 "blocks from " + std::to_string(from) + " to " + std::to_string(to) + " are none"};
  }
  if (objection.ok()) objection = Unaskable(deadline);
  if (objection.ok() && request != 0) objection = CheckOpen(request);
  if (!objection.ok()) return Refused<ReserveResult>(objection);
  const pb::ClientMessage head = Head(deadline);
  pb::Reserve body;
  body.set_request(request);
  body.set_from(from);
  body.set_to(to);
  body.set_claim_deadline_ns(static_cast<uint64_t>(claim_deadline));
  const pb::Prompt rest = request == 0 ? WithoutTokens(prompt) : pb::Prompt();
  TokenMessage message = {&head,
                          &body,
                          pb::ClientMessage::kReserveFieldNumber,
                          nullptr,
                          pb::Reserve::kPromptFieldNumber,
                          pb::Reserve::kAppendTokensFieldNumber,
                          append_tokens};
  if (request == 0) {
    message.prompt = &rest;
    message.tokens_field = pb::Prompt::kTokensFieldNumber;
    message.tokens = prompt.tokens;
  }
  auto slot = NewSlot<ReserveResult>(deadline);
  Pending pending{deadline, true, ReserveCall{slot, to}};
  slot = Ask(message, head.serial(), std::move(pending), std::move(slot));
  Reached(options_.steps, Step::kReserveQueued);
  return slot;
}

Slot<BeginResult> Session::StartBegin(std::span<const Claim> claims, int64_t deadline) {
  Objection objection = CheckClaims(claims);
  if (objection.ok()) objection = Unaskable(deadline);
  if (!objection.ok()) return Refused<BeginResult>(objection);
  // What a message before has said of the claims, as it were: those with kLimit are to be asked.
  BeginResult known{.code = Code::kOk, .message = "", .codes = {}, .holds = {}};
  std::vector<uint64_t> asked;
  for (const Claim& claim : claims) {
    const bool of_this_life = claim.boot_id == boot_id_;
    if (of_this_life) asked.push_back(claim.id);
    known.codes.push_back(of_this_life ? Code::kLimit : Code::kUnknown);
  }
  if (asked.size() < claims.size()) {
    known.message = "a claim of another life of the node: touch nothing";
    known.holds.resize(claims.size());
  } else {
    known = {};
  }
  if (asked.empty()) return Refused<BeginResult>({Code::kUnknown, known.message});
  QueueOwed();  // an End of the same claim comes first
  auto slot = NewSlot<BeginResult>(deadline);
  AskBegin(slot, std::move(asked), std::move(known));
  return slot;
}

void Session::AskBegin(const Slot<BeginResult>& slot, std::vector<uint64_t> claims,
                       BeginResult begun) {
  pb::ClientMessage message = Head(slot->deadline);
  message.mutable_begin()->mutable_claims()->Add(claims.begin(), claims.end());
  Pending pending{slot->deadline, true, BeginCall{slot, std::move(claims), std::move(begun)}};
  Ask(message, message.serial(), std::move(pending), slot);
  Reached(options_.steps, Step::kBeginQueued);
}

// The message has no deadline: a hold that is not ended stays.
bool Session::QueueEnd(const HoldState& hold, const Slot<EndResult>& slot) {
  pb::ClientMessage message = Head(0);
  FillEnd(hold, message.mutable_end()->add_items());
  const int64_t deadline = slot->deadline;
  if (!Queue(message, message.serial(), Pending{deadline, true, EndCall{slot, 1}})) return false;
  Reached(options_.steps, Step::kEndQueued);
  return true;
}

Slot<EndResult> Session::StartEnd(Hold hold, int64_t deadline) {
  const std::shared_ptr<HoldState> state = HoldAccess::Take(&hold);
  if (!state) return Refused<EndResult>({Code::kInvalid, "an empty hold was ended"});
  const Objection objection = UnsendableRelease();
  if (!objection.ok()) return Refused<EndResult>(objection);
  if (state->memory != memory_) {
    return Refused<EndResult>({Code::kLost, "the hold's session is over"});
  }
  state->control.stop.store(true, std::memory_order_release);
  if (!state->Quiet()) {
    return Refused<EndResult>(
        {Code::kInvalid, "a copy is running: the hold is given back when it has left"});
  }
  auto slot = NewSlot<EndResult>(deadline);
  state->ended = QueueEnd(*state, slot);
  if (state->ended) {
    holds_.erase(state->claim.id);
    if (state_ != State::kAbsent) return slot;
    slot->result.message = last_error_;
  } else {
    ++counters_.calls_lost_full;
    slot->result.message = "too much is queued for the node already; the hold is given back";
  }
  ++counters_.calls_lost;
  slot->ready = true;
  return slot;
}

Slot<SettleResult> Session::StartSettle(uint64_t request, const Used& used, int64_t deadline) {
  Objection objection = UnsendableRelease();
  if (objection.ok()) objection = CheckOpen(request);
  if (!objection.ok()) return Refused<SettleResult>(objection);
  pb::ClientMessage message = Head(0);  // the account must be told, however late
  pb::Settle* settle = message.mutable_settle();
  settle->set_request(request);
  settle->set_engine(used.engine);
  settle->set_device(used.device);
  settle->set_host(used.host);
  settle->set_disk(used.disk);
  settle->set_peer(used.peer);
  settle->set_failed(used.failed);
  settle->set_prefill_micros(used.prefill_micros);
  auto slot = NewSlot<SettleResult>(deadline);
  Pending pending{deadline, true, SettleCall{slot}};
  slot = Ask(message, message.serial(), std::move(pending), std::move(slot));
  if (!slot->ready) requests_.erase(request);
  Reached(options_.steps, Step::kSettleQueued);
  if (state_ == State::kAbsent && !slot->ready) {
    ++counters_.calls_lost;
    slot->result.message = last_error_;
    slot->ready = true;
  }
  return slot;
}

void Session::Abort(std::span<const Claim> claims) {
  if (Forked() || !UnsendableRelease().ok()) return;
  for (const Claim& claim : claims) {
    if (!claim || claim.boot_id != boot_id_) continue;
    owed_.push_back({Return::Kind::kAbort, claim.id});
    const auto found = holds_.find(claim.id);
    if (found == holds_.end()) continue;
    const auto hold = found->second.lock();
    if (hold) hold->control.stop.store(true, std::memory_order_release);
  }
  QueueOwed();
}

void Session::QueueOwed() {
  if (session_ == 0) return;
  const std::vector<Return> returned = memory_->returns()->Take();
  counters_.given_back += returned.size();
  owed_.insert(owed_.end(), returned.begin(), returned.end());
  size_t done = 0;
  while (done < owed_.size()) {
    const bool abort = owed_[done].kind == Return::Kind::kAbort;
    size_t end = done + 1;
    while (end < owed_.size() && end - done < limits::kClaimsPerMessage &&
           (owed_[end].kind == Return::Kind::kAbort) == abort) {
      ++end;
    }
    if (!QueueOwedMessage(std::span(owed_).subspan(done, end - done))) break;
    done = end;
  }
  owed_.erase(owed_.begin(), owed_.begin() + static_cast<ptrdiff_t>(done));
}

// `items` are all aborts or all ends.
bool Session::QueueOwedMessage(std::span<const Return> items) {
  pb::ClientMessage message = Head(0);
  const bool abort = items.front().kind == Return::Kind::kAbort;
  for (const Return& item : items) {
    if (abort) {
      message.mutable_abort()->add_claims(item.claim);
    } else {
      pb::EndItem* end = message.mutable_end()->add_items();
      end->set_claim(item.claim);
      end->set_failed(item.kind == Return::Kind::kEndStore);
    }
  }
  Pending pending{INT64_MAX, false, AbortCall{}};
  if (!abort) pending.call = EndCall{{}, items.size()};
  if (!Queue(message, message.serial(), std::move(pending))) return false;
  if (!abort) {
    for (const Return& item : items) holds_.erase(item.claim);
  }
  Reached(options_.steps, abort ? Step::kAbortQueued : Step::kEndQueued);
  return true;
}

template bool Session::Queue(const pb::ClientMessage&, uint64_t, Pending);

}  // namespace pando::client
