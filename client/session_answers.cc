// The half of Session that hears: frames, extents, answers.
#include <google/protobuf/arena.h>

#include <type_traits>
#include <utility>

#include "client/limits.h"
#include "client/session.h"

namespace pando::client {
namespace {

// The answer to the claims that had no room before, in their places: then `result` is of all.
void Complete(BeginResult begun, BeginResult* result) {
  if (begun.codes.empty()) return;  // there was no message before
  size_t next = 0;
  for (size_t i = 0; i < begun.codes.size(); ++i) {
    if (begun.codes[i] != Code::kLimit) continue;
    begun.codes[i] = result->codes[next];
    begun.holds[i] = std::move(result->holds[next]);
    ++next;
  }
  if (begun.message.empty()) begun.message = std::move(result->message);
  *result = std::move(begun);
}

}  // namespace

std::string Session::OnFrame(std::string_view bytes, int64_t now) {
  alignas(8) char block[8192];  // most frames need no more
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = sizeof(block);
  google::protobuf::Arena arena(options);
  auto* frame = google::protobuf::Arena::CreateMessage<pb::NodeFrame>(&arena);
  if (!frame->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return "the node sent a frame of " + std::to_string(bytes.size()) +
           " bytes that is no NodeFrame";
  }
  if (frame->boot_id() == 0) return "the node sent a frame without its boot id";
  if (boot_id_ != 0 && frame->boot_id() != boot_id_) {
    return "the node's boot id changed: it is another node";
  }
  boot_id_ = frame->boot_id();
  std::string wrong = MapExtents(*frame);
  for (const pb::NodeMessage& message : frame->messages()) {
    if (!wrong.empty() || !connected()) break;
    wrong = OnMessage(message, now);
  }
  return wrong;
}

std::string Session::MapExtents(const pb::NodeFrame& frame) {
  if (frame.extents().empty()) return "";
  for (const uint32_t extent : frame.extents()) {
    std::string wrong = memory_->Map(extent, channel_->TakeFd());
    if (!wrong.empty()) return wrong;
  }
  Reached(options_.steps, Step::kExtentsMapped);
  return "";
}

std::string Session::OnMessage(const pb::NodeMessage& message, int64_t now) {
  const auto found = pending_.find(message.serial());
  if (found == pending_.end()) {
    return "the node answered message " + std::to_string(message.serial()) +
           ", which was never sent or is answered already";
  }
  Pending pending = std::move(found->second);
  pending_.erase(found);
  if (state_ == State::kAbsent) state_ = State::kAttached;
  return std::visit(
      [&]<class AnyCall>(AnyCall& call) -> std::string {
        if constexpr (std::is_same_v<AnyCall, AttachCall>) {
          return OnAttached(message, now);
        } else if constexpr (std::is_same_v<AnyCall, AbortCall>) {
          return "";
        } else {
          if constexpr (std::is_same_v<AnyCall, AcquireCall>) {
            if (message.code() != pb::OK) NotOpened(call.request, message.serial());
          }
          return OnAnswer(message, &pending, &call, now);
        }
      },
      pending.call);
}

std::string Session::OnAttached(const pb::NodeMessage& message, int64_t now) {
  if (message.code() == pb::EXPIRED) return "the node was too slow to attach in time";
  if (message.code() != pb::OK) {
    Refuse(now, message.message().empty() ? "the node refused attach" : message.message(),
           message.code() == pb::UNAVAILABLE);
    return "";
  }
  if (!message.has_attach() || message.attach().session() == 0) {
    return "the answer to attach names no session";
  }
  if (message.attach().protocol() != limits::kProtocolVersion) {
    return "the node speaks protocol " + std::to_string(message.attach().protocol()) +
           ", this client " + std::to_string(limits::kProtocolVersion);
  }
  session_ = message.attach().session();
  state_ = State::kAttached;
  retry_in_ = options_.retry_min_ns;
  last_error_.clear();
  ++counters_.attaches;
  Reached(options_.steps, Step::kAttached);
  return "";
}

// The request may be open all the same, by another acquire: then that is what was wrong.
void Session::NotOpened(uint64_t request, uint64_t serial) {
  const auto found = requests_.find(request);
  if (found != requests_.end() && found->second == serial) requests_.erase(found);
}

template <class AnyCall>
std::string Session::OnAnswer(const pb::NodeMessage& message, Pending* pending, AnyCall* call,
                              int64_t now) {
  typename AnyCall::Result result;
  std::string wrong = ReadAnswer(message, *call, {&options_, memory_, boot_id_}, &result);
  if (wrong.empty()) wrong = Keep(&result);
  const auto slot = call->slot.lock();
  if (wrong.empty() && slot && pending->waited && now < slot->deadline) {
    if (GoesOn(call, slot, &result)) return "";
    slot->result = std::move(result);
    slot->ready = true;
    Reached(options_.steps, AnyCall::kAnswered);
    return "";
  }
  // Nobody waits any more, or the answer is false: what it brings goes back.
  if (Fail(pending, Code::kLost, wrong.empty() ? "the answer came too late" : wrong)) {
    ++counters_.calls_lost;
  }
  GiveBack(result, memory_->returns().get());
  return wrong;
}

// An answer names only so many pages; the claims that had no room in it are begun with a message of
// their own. One that had none although nothing else was begun never will.
bool Session::GoesOn(BeginCall* call, const Slot<BeginResult>& slot, BeginResult* result) {
  if (result->code != Code::kOk) return false;  // then the call has failed, and begins nothing
  std::vector<uint64_t> rest;
  bool begun = false;
  for (size_t i = 0; i < call->claims.size(); ++i) {
    if (result->codes[i] == Code::kLimit) rest.push_back(call->claims[i]);
    begun = begun || result->codes[i] == Code::kOk;
  }
  Complete(std::move(call->begun), result);
  if (rest.empty() || !begun) return false;
  AskBegin(slot, std::move(rest), std::move(*result));
  return true;
}

// Holds are known by their claim, so that all can be stopped; the node owes each claim to one.
std::string Session::Keep(BeginResult* result) {
  for (Hold& hold : result->holds) {
    const std::shared_ptr<HoldState>& state = HoldAccess::Look(hold);
    if (!state) continue;
    if (!holds_.try_emplace(state->claim.id, state).second) {
      return "begin of claim " + std::to_string(state->claim.id) + " was accepted twice";
    }
  }
  return "";
}

template <class Result>
std::string Session::Keep(Result*) {
  return "";
}

}  // namespace pando::client
