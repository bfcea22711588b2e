#include "tests/fuzz/engines.h"

#include <algorithm>
#include <utility>

#include "node/core/limits.h"
#include "tests/fuzz/prompts.h"

namespace pando::fuzz {
namespace {

// From this on, `which` names what was never given.
constexpr uint8_t kNever = 250;

template <class T>
const T* Newest(const std::vector<T>& given, uint32_t which) {
  return given.empty() ? nullptr : &given[given.size() - 1 - which % given.size()];
}

uint32_t BlockOf(uint8_t number) {
  return number == UINT8_MAX ? UINT32_MAX : number;
}

}  // namespace

// ---- Messages

std::optional<Answer> Engines::Send(const Operation& operation, RequestBody body) {
  Slot& slot = SlotOf(operation);
  const uint64_t serial = ++last_serial_;
  const Nanos deadline = operation.odd == 1 ? watch_->now() : 0;
  unanswered_.emplace(serial, slot.id);
  watch_->Step(SessionRequest{slot.id, serial, deadline, std::move(body)});
  auto answer = answers_.extract(serial);
  if (answer.empty()) return std::nullopt;
  return std::move(answer.mapped());
}

void Engines::Take(Output& output) {
  if (auto* send = std::get_if<SendAnswer>(&output)) {
    const auto asked = unanswered_.extract(send->serial);
    watch_->Expect(!asked.empty(), "an answer to no message, or a second one");
    watch_->Expect(asked.empty() || asked.mapped() == send->session, "an answer to another");
    const bool ok = send->answer.code == Code::kOk;
    watch_->Expect(ok != std::holds_alternative<std::monostate>(send->answer.body),
                   "an answer with a code that its body belies");
    watch_->Expect(ok || !send->answer.message.empty(), "a refusal that does not say why");
    answers_[send->serial] = std::move(send->answer);
    const auto await = awaits_.extract(send->serial);
    if (await.empty()) return;
    const Answer answer = std::move(answers_.extract(send->serial).mapped());
    const auto* come = std::get_if<AwaitAnswer>(&answer.body);
    if (come == nullptr || come->claim == ClaimId()) return;
    for (const Slot& slot : slots_) {
      if (slot.id != send->session) continue;
      const Request& request = requests_[{slot.replica, await.mapped().request}];
      claims_.push_back({come->claim, slot.replica, false, 0, come->blocks, request.prompt});
    }
  } else if (const auto* gone = std::get_if<SessionForgotten>(&output)) {
    const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                   [&](const Slot& s) { return s.id == gone->session; });
    watch_->Expect(slot != slots_.end() && !slot->open, "a session is forgotten that is not over");
    if (slot != slots_.end()) *slot = {};
  } else if (const auto* log = std::get_if<LogLine>(&output)) {
    if (log->event == "replica.gone") replicas_.erase(log->fields.front().second);
  }
}

void Engines::Do(const Operation& operation) {
  Slot& slot = SlotOf(operation);
  switch (operation.kind) {
    case Kind::kTick:
      return watch_->Advance(NanosOf(operation.time));
    case Kind::kExtent:
      return watch_->AddExtent();
    case Kind::kOpen:
      return Open(&slot);
    case Kind::kRefused:
      return watch_->Step(RefusedOutside{
          static_cast<RefusedOutside::What>(operation.more % RefusedOutside::kKinds)});
    case Kind::kDrain:
      if (operation.odd == 1) watch_->Step(DrainRequested{});
      return;
    default:
      break;
  }
  if (slot.id == SessionId()) return;
  switch (operation.kind) {
    case Kind::kAttach:
      return Attach(operation);
    case Kind::kAcquire:
      return Acquire(operation);
    case Kind::kAwait:
      return Await(operation);
    case Kind::kProbe:
      Send(operation, ProbeRequest{PromptOf(operation)});
      return;
    case Kind::kReserve:
      return Reserve(operation);
    case Kind::kBegin:
      return Begin(operation);
    case Kind::kEnd:
      return End(operation);
    case Kind::kAbort:
      Send(operation,
           AbortRequest{{ClaimOf(operation, 0), ClaimOf(operation, operation.more % 4)}});
      return;
    case Kind::kSettle:
      return Settle(operation);
    case Kind::kClose:
      return Close(&slot);
    case Kind::kExit:
      return Exit(&slot);
    default:
      return;
  }
}

// ---- Sessions

void Engines::Open(Slot* slot) {
  if (slot->id != SessionId()) return;
  slot->id = SessionId(++last_session_);
  slot->open = true;
  watch_->Step(SessionOpened{slot->id});
}

void Engines::Close(Slot* slot) {
  if (!slot->open) return;
  slot->open = false;
  const SessionId session = slot->id;
  watch_->Step(SessionClosed{session});
  std::erase_if(unanswered_, [&](const auto& asked) { return asked.second == session; });
  std::erase_if(awaits_, [&](const auto& await) { return !unanswered_.contains(await.first); });
}

// From now on it touches nothing.
void Engines::Exit(Slot* slot) {
  if (slot->id == SessionId() || std::exchange(slot->exited, true)) return;
  const SessionId session = slot->id;
  LetGo(session);
  watch_->Step(ProcessExited{session});
}

void Engines::LetGo(SessionId session) {
  std::erase_if(holds_, [&](const auto& entry) {
    if (entry.first.first != session) return false;
    Verify(entry.second);
    watch_->memory().Leave(entry.second.accessor);
    return true;
  });
}

void Engines::Leave() {
  watch_->Advance(2 * limits::kClaimLife);
  watch_->Expect(awaits_.empty(), "an await was not answered in time");
  for (Slot& slot : slots_) {
    if (slot.id == SessionId()) continue;
    Close(&slot);
    Exit(&slot);
  }
}

// ---- Acquire to Settle

ClaimId Engines::ClaimOf(const Operation& operation, uint32_t further) const {
  const Claim* claim = Newest(claims_, operation.which + further);
  if (operation.which < kNever && claim != nullptr) return claim->id;
  return ClaimId(operation.which == kNever ? 0 : claims_.size() + operation.which);
}

void Engines::Acquire(const Operation& operation) {
  AcquireRequest acquire;
  acquire.request = RequestOf(operation);
  acquire.prompt = PromptOf(operation);
  acquire.engine_hit_tokens = operation.from;
  acquire.claim_deadline = DeadlineOf(operation.time, watch_->now());
  acquire.compute = (operation.more & 1) != 0;
  acquire.again = (operation.more & 2) != 0;
  const std::string replica = SlotOf(operation).replica;
  const auto answer = Send(operation, acquire);
  watch_->Expect(answer.has_value(), "an acquire was not answered");
  const auto* got = answer ? std::get_if<AcquireAnswer>(&answer->body) : nullptr;
  if (got == nullptr) return;
  requests_[{replica, acquire.request}] = {acquire.prompt, false};
  if (got->ticket != 0) tickets_.push_back({got->ticket, acquire.request});
  if (got->claim == ClaimId()) return;
  claims_.push_back({got->claim, replica, false, 0, got->blocks, acquire.prompt});
}

void Engines::Await(const Operation& operation) {
  const Ticket* known = Newest(tickets_, operation.which);
  const bool never = known == nullptr || operation.which >= kNever;
  const Ticket ticket = never ? Ticket{operation.which, RequestId()} : *known;
  const uint64_t serial = last_serial_ + 1;
  awaits_.emplace(serial, ticket);
  Send(operation, AwaitRequest{ticket.id, DeadlineOf(operation.time, watch_->now())});
}

void Engines::Reserve(const Operation& operation) {
  ReserveRequest reserve;
  const bool by_request = (operation.more & 1) != 0;
  if (by_request) reserve.request = RequestOf(operation);
  if (by_request && (operation.more & 2) != 0) reserve.append_tokens = MoreTokens(operation);
  if (!by_request || operation.odd == 2) reserve.prompt = PromptOf(operation);
  if (operation.odd == 3) reserve.append_tokens = MoreTokens(operation);
  reserve.from = BlockOf(operation.from);
  reserve.to = BlockOf(operation.to);
  reserve.claim_deadline = DeadlineOf(operation.time, watch_->now());
  const auto answer = Send(operation, reserve);
  watch_->Expect(answer.has_value(), "a reserve was not answered");
  if (answer) Reserved(SlotOf(operation), reserve, *answer);
}

// As the node must see it: tokens that were not taken end the request's growth.
void Engines::Reserved(const Slot& slot, const ReserveRequest& reserve, const Answer& answer) {
  const auto request = requests_.find({slot.replica, reserve.request});
  const auto* got = std::get_if<ReserveAnswer>(&answer.body);
  const bool known = request != requests_.end();
  if (known && !reserve.append_tokens.empty()) {
    PromptData& prompt = request->second.prompt;
    const bool heard = slot.open && !slot.exited && slot.attached && !slot.displaced;
    if (got == nullptr && heard) request->second.stopped = true;
    if (got != nullptr && !request->second.stopped) {
      prompt.tokens.insert(prompt.tokens.end(), reserve.append_tokens.begin(),
                           reserve.append_tokens.end());
      if (!prompt.segments.empty()) prompt.segments.back().end = prompt.tokens.size();
    }
  }
  if (got == nullptr || got->claim == ClaimId()) return;
  const PromptData& prompt = known ? request->second.prompt : reserve.prompt;
  claims_.push_back({got->claim, slot.replica, true, got->from, got->to, prompt});
}

void Engines::Settle(const Operation& operation) {
  SettleRequest settle;
  settle.request = RequestOf(operation);
  settle.engine = operation.from;
  settle.host = operation.to;
  settle.peer = operation.tokens;
  settle.failed = operation.form;
  settle.prefill_micros = operation.more;
  if (operation.odd == 2) settle.host = settle.failed = UINT64_MAX;
  if (operation.odd == 3) settle.device = settle.disk = operation.more;
  const auto answer = Send(operation, settle);
  watch_->Expect(answer.has_value(), "a settle was not answered");
}

// ---- Copies

void Engines::Begin(const Operation& operation) {
  BeginRequest begin;
  for (uint32_t i = 0; i <= operation.more % 3; ++i) {
    begin.claims.push_back(ClaimOf(operation, i));
  }
  if (operation.odd == 2) begin.claims.resize(limits::kClaimsPerMessage + 1);
  const auto answer = Send(operation, begin);
  watch_->Expect(answer.has_value(), "a begin was not answered");
  const auto* got = answer ? std::get_if<BeginAnswer>(&answer->body) : nullptr;
  if (got == nullptr) return;
  watch_->Expect(got->items.size() == begin.claims.size(), "a begin's answer with other items");
  for (const BeginItem& item : got->items) {
    if (item.code == Code::kOk) Begun(SlotOf(operation), item);
  }
}

// A hold begins: a store writes at once, a load compares.
void Engines::Begun(const Slot& slot, const BeginItem& item) {
  const auto claim = std::find_if(claims_.begin(), claims_.end(),
                                  [&](const Claim& c) { return c.id == item.claim; });
  const bool own = claim != claims_.end() && claim->replica == slot.replica;
  watch_->Expect(own, "a claim was begun that was not given to this replica");
  if (!own) return;
  const SpaceDescription& shape = replicas_[slot.replica];
  watch_->Expect(item.store == claim->store && item.first_block == claim->from &&
                     item.pages.size() == claim->to - claim->from &&
                     item.generations.size() == item.pages.size() &&
                     item.checksums.size() == (item.store ? 0 : item.pages.size()) &&
                     item.page_bytes == shape.page_bytes,
                 "a begin that is not what was claimed");
  const auto stamps = StampsOf(SpaceIdentity(shape), shape.block_tokens, slot.shard, claim->prompt);
  watch_->Expect(claim->to <= stamps.size(), "a claim on more blocks than the prompt has");
  if (claim->to > stamps.size()) return;
  Hold hold{watch_->memory().Enter(item.pages),
            item.store,
            item.pages,
            {stamps.begin() + claim->from, stamps.begin() + claim->to}};
  for (size_t i = 0; i < item.pages.size(); ++i) {
    if (item.store) {
      watch_->memory().Write(hold.accessor, item.pages[i], hold.stamps[i]);
    } else {
      watch_->Expect(item.checksums[i] == Checksum(hold.stamps[i]), "a wrong checksum was given");
    }
  }
  Verify(hold);
  const bool first = holds_.emplace(std::pair(slot.id, item.claim), std::move(hold)).second;
  watch_->Expect(first, "a claim was begun twice");
}

// What it holds has not been written by anybody else.
void Engines::Verify(const Hold& hold) {
  for (size_t i = 0; i < hold.pages.size(); ++i) {
    const bool right = watch_->memory().Read(hold.accessor, hold.pages[i]) == hold.stamps[i];
    watch_->Expect(right, hold.store ? "a page that is being written has another's bytes"
                                     : "a page with wrong bytes was given");
  }
}

EndItem Engines::EndOf(const Operation& operation, const Slot& slot, ClaimId claim) const {
  EndItem item;
  item.claim = claim;
  item.failed = operation.odd == 2;
  const auto hold = holds_.find({slot.id, claim});
  if (hold != holds_.end() && hold->second.store) {
    for (const sim::Stamp& stamp : hold->second.stamps) item.checksums.push_back(Checksum(stamp));
  }
  if (operation.odd == 3) item.checksums.push_back(0);
  if (operation.odd == 4) item.bad_pages = {operation.from};
  if (operation.odd == 5) item.bad_pages = {operation.to, operation.from, operation.from};
  if (operation.odd == 6) item.checksums.clear();
  return item;
}

void Engines::End(const Operation& operation) {
  const Slot slot = SlotOf(operation);
  EndRequest end;
  for (uint32_t i = 0; i <= operation.more % 3; ++i) {
    end.items.push_back(EndOf(operation, slot, ClaimOf(operation, i)));
    const auto hold = holds_.find({slot.id, end.items.back().claim});
    if (hold != holds_.end()) Verify(hold->second);
  }
  const auto answer = Send(operation, end);
  watch_->Expect(answer.has_value(), "an end was not answered");
  if (!answer) return;
  const auto* got = std::get_if<EndAnswer>(&answer->body);
  watch_->Expect(got == nullptr || got->codes.size() == end.items.size(),
                 "an end's answer with other items");
  // However late, it says that the pages are touched no more.
  if (answer->code != Code::kOk && answer->code != Code::kExpired) return;
  for (const EndItem& item : end.items) {
    const auto hold = holds_.extract({slot.id, item.claim});
    if (!hold.empty()) watch_->memory().Leave(hold.mapped().accessor);
  }
}

}  // namespace pando::fuzz
