#include "client/answers.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "client/hold_state.h"
#include "client/limits.h"

namespace pando::client {
namespace {

constexpr size_t kMessageBytes = 1024;  // kept of what the node says

// The i-th value of a packed little-endian column.
template <class Value>
Value At(std::string_view column, size_t i) {
  Value value;
  std::memcpy(&value, column.data() + i * sizeof(Value), sizeof(Value));
  return value;
}

// Sets code and message. True if there is a body to read.
template <class Result>
bool ReadHead(const pb::NodeMessage& message, Result* result) {
  result->code = ToCode(message.code());
  result->message = message.message().substr(0, kMessageBytes);
  return result->code == Code::kOk;
}

std::string WrongBody(const char* call) {
  return std::string("the answer to ") + call + " has the body of another answer";
}

// Leading blocks that the node says are there, for a prompt of `tokens`. One token at least is
// left to compute.
bool BlocksFit(uint64_t blocks, uint64_t tokens, const Options& options) {
  const uint64_t block_tokens = options.block_tokens == 0 ? 1 : options.block_tokens;
  return blocks == 0 || blocks * block_tokens < tokens;
}

std::string CheckColumns(const pb::BeginItem& item, const Options& options) {
  const std::string name = "begin of claim " + std::to_string(item.claim()) + ": ";
  if (item.page_bytes() == 0 || item.page_bytes() > limits::kPageBytes ||
      (options.page_bytes != 0 && item.page_bytes() != options.page_bytes)) {
    return name + "pages of " + std::to_string(item.page_bytes()) + " bytes";
  }
  const size_t pages = item.pages().size() / sizeof(uint32_t);
  const size_t checksums = item.store() ? 0 : pages * sizeof(uint64_t);
  if (pages == 0 || item.pages().size() != pages * sizeof(uint32_t) ||
      item.generations().size() != pages * sizeof(uint32_t) ||
      item.checksums().size() != checksums) {
    return name + std::to_string(item.pages().size()) + " bytes of pages, " +
           std::to_string(item.generations().size()) + " of generations, " +
           std::to_string(item.checksums().size()) + " of checksums do not belong together";
  }
  return "";
}

std::string MakeHold(const pb::BeginItem& item, const AnswerContext& context, Hold* hold) {
  std::string wrong = CheckColumns(item, *context.options);
  if (!wrong.empty()) return wrong;
  const size_t pages = item.pages().size() / sizeof(uint32_t);
  auto state = std::make_shared<HoldState>(context.memory, pages);
  state->claim = {context.boot_id, item.claim()};
  state->store = item.store();
  state->first_block = item.first_block();
  state->page_bytes = item.page_bytes();
  state->steps = context.options->steps;
  for (size_t i = 0; i < pages; ++i) {
    const auto page = At<uint32_t>(item.pages(), i);
    const std::span<std::byte> bytes = context.memory->Page(page, item.page_bytes());
    if (bytes.empty()) {
      state->ended = true;  // it never began
      return "begin of claim " + std::to_string(item.claim()) + ": page " + std::to_string(page) +
             " of " + std::to_string(item.page_bytes()) +
             " bytes is not in an extent that this session has";
    }
    state->pages[i].bytes = bytes.data();
    if (!item.store()) state->pages[i].checksum = At<uint64_t>(item.checksums(), i);
  }
  *hold = HoldAccess::Make(std::move(state));
  return "";
}

// Where `claim` was asked for: mostly at `guess`. The size of the list: nowhere.
size_t IndexOf(const std::vector<uint64_t>& claims, uint64_t claim, size_t guess) {
  if (guess < claims.size() && claims[guess] == claim) return guess;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (claims[i] == claim) return i;
  }
  return claims.size();
}

}  // namespace

Code ToCode(pb::Code code) {
  switch (code) {
    case pb::OK:
      return Code::kOk;
    case pb::INVALID:
      return Code::kInvalid;
    case pb::LIMIT:
      return Code::kLimit;
    case pb::UNKNOWN:
      return Code::kUnknown;
    case pb::EXPIRED:
      return Code::kExpired;
    default:
      return Code::kUnavailable;  // also what a later version may say
  }
}

std::string ReadAnswer(const pb::NodeMessage& message, const AcquireCall& call,
                       const AnswerContext& context, AcquireResult* result) {
  if (!ReadHead(message, result)) return "";
  if (!message.has_acquire()) return WrongBody("acquire");
  const pb::AcquireAnswer& answer = message.acquire();
  if ((answer.claim() == 0) != (answer.blocks() == 0) ||
      !BlocksFit(answer.blocks(), call.tokens, *context.options)) {
    return "the answer to acquire names claim " + std::to_string(answer.claim()) + " on " +
           std::to_string(answer.blocks()) + " blocks of a prompt of " +
           std::to_string(call.tokens) + " tokens";
  }
  if (answer.claim() != 0) result->claim = {context.boot_id, answer.claim()};
  result->blocks = answer.blocks();
  result->in_flight = answer.in_flight();
  result->ticket = answer.ticket();
  return "";
}

std::string ReadAnswer(const pb::NodeMessage& message, const AwaitCall& call,
                       const AnswerContext& context, AwaitResult* result) {
  (void)call;
  if (!ReadHead(message, result)) return "";
  if (!message.has_await()) return WrongBody("await");
  const pb::AwaitAnswer& answer = message.await();
  if ((answer.claim() != 0 && answer.blocks() == 0) ||
      !BlocksFit(answer.blocks(), limits::kTokensPerPrompt + 1, *context.options)) {
    return "the answer to await names claim " + std::to_string(answer.claim()) + " on " +
           std::to_string(answer.blocks()) + " blocks";
  }
  if (answer.claim() != 0) result->claim = {context.boot_id, answer.claim()};
  result->blocks = answer.blocks();
  result->in_flight = answer.in_flight();
  result->peer_from = answer.peer_from();
  result->peer_to = answer.peer_to();
  return "";
}

std::string ReadAnswer(const pb::NodeMessage& message, const ProbeCall& call,
                       const AnswerContext& context, ProbeResult* result) {
  if (!ReadHead(message, result)) return "";
  if (!message.has_probe()) return WrongBody("probe");
  const pb::ProbeAnswer& answer = message.probe();
  if (!BlocksFit(answer.blocks(), call.tokens, *context.options)) {
    return "the answer to probe finds " + std::to_string(answer.blocks()) +
           " blocks in a prompt of " + std::to_string(call.tokens) + " tokens";
  }
  result->blocks = answer.blocks();
  result->in_flight = answer.in_flight();
  return "";
}

std::string ReadAnswer(const pb::NodeMessage& message, const ReserveCall& call,
                       const AnswerContext& context, ReserveResult* result) {
  if (!ReadHead(message, result)) return "";
  if (!message.has_reserve()) return WrongBody("reserve");
  const pb::ReserveAnswer& answer = message.reserve();
  const bool empty = answer.from() == answer.to();
  if (answer.from() > answer.to() || (!empty && answer.to() > call.to) ||
      empty != (answer.claim() == 0)) {
    return "the answer to reserve names claim " + std::to_string(answer.claim()) + " on blocks " +
           std::to_string(answer.from()) + " to " + std::to_string(answer.to()) +
           ", asked were those up to " + std::to_string(call.to);
  }
  if (answer.claim() != 0) result->claim = {context.boot_id, answer.claim()};
  result->from = answer.from();
  result->to = answer.to();
  result->in_flight = answer.in_flight();
  result->full = answer.full();
  return "";
}

std::string ReadAnswer(const pb::NodeMessage& message, const BeginCall& call,
                       const AnswerContext& context, BeginResult* result) {
  if (!ReadHead(message, result)) return "";
  if (!message.has_begin()) return WrongBody("begin");
  const size_t asked = call.claims.size();
  result->codes.assign(asked, Code::kLost);
  result->holds.resize(asked);
  std::vector<bool> answered(asked);
  size_t guess = 0;
  bool begun = false;
  std::string no_room;  // is said only if it stays so: other claims' room is asked for again
  for (const pb::BeginItem& item : message.begin().items()) {
    const size_t i = IndexOf(call.claims, item.claim(), guess);
    if (i == asked || answered[i]) {
      return "the answer to begin names claim " + std::to_string(item.claim()) +
             (i == asked ? ", which was not asked for" : " twice");
    }
    answered[i] = true;
    guess = i + 1;
    result->codes[i] = ToCode(item.code());
    if (result->codes[i] != Code::kOk) {
      std::string& said = result->codes[i] == Code::kLimit ? no_room : result->message;
      if (said.empty()) said = item.message().substr(0, kMessageBytes);
      continue;
    }
    begun = true;
    std::string wrong = MakeHold(item, context, &result->holds[i]);
    if (!wrong.empty()) return wrong;
  }
  if (!begun && result->message.empty()) result->message = no_room;
  if (static_cast<size_t>(message.begin().items_size()) == asked) return "";
  return "the answer to begin has " + std::to_string(message.begin().items_size()) + " items for " +
         std::to_string(asked) + " claims";
}

std::string ReadAnswer(const pb::NodeMessage& message, const EndCall& call,
                       const AnswerContext& context, EndResult* result) {
  (void)context;
  if (!ReadHead(message, result)) return "";
  if (!message.has_end()) return WrongBody("end");
  const pb::EndAnswer& answer = message.end();
  if (static_cast<size_t>(answer.codes_size()) != call.items) {
    return "the answer to end has " + std::to_string(answer.codes_size()) + " codes for " +
           std::to_string(call.items) + " items";
  }
  result->code = ToCode(answer.codes(0));
  return "";
}

std::string ReadAnswer(const pb::NodeMessage& message, const SettleCall& call,
                       const AnswerContext& context, SettleResult* result) {
  (void)call;
  (void)context;
  if (!ReadHead(message, result)) return "";
  return message.has_settle() ? "" : WrongBody("settle");
}

}  // namespace pando::client
