#include "node/local/codec.h"

#include <google/protobuf/stubs/logging.h>

#include <bit>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pando/v1/client.pb.h"

namespace pando::local {
namespace {

static_assert(std::endian::native == std::endian::little, "packed columns are little-endian");

using Refusal = std::optional<Answer>;

Answer Invalid(std::string message) {
  return Answer{Code::kInvalid, std::move(message), {}};
}

// A packed column: T each, little-endian. False if `bytes` is not a whole number of them.
template <class T>
bool DecodeColumn(const std::string& bytes, std::vector<T>* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() % sizeof(T) != 0) return false;
  // A string keeps its bytes aligned for every T. One copy; resize would write zeros before it.
  const T* values = reinterpret_cast<const T*>(bytes.data());
  out->assign(values, values + bytes.size() / sizeof(T));
  return true;
}

template <class T>
void EncodeColumn(const std::vector<T>& values, std::string* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

Answer WrongColumn(const char* column, size_t found, size_t item) {
  return Invalid(std::string(column) + ": found " + std::to_string(found) +
                 " bytes; a packed column is a multiple of " + std::to_string(item));
}

Answer WrongDeadline(const char* name, uint64_t found) {
  return Invalid(std::string(name) + ": found " + std::to_string(found) +
                 "; CLOCK_MONOTONIC nanoseconds are below 2^63, 0 is none");
}

Refusal DecodePrompt(const v1::Prompt& in, PromptData* out) {
  if (!DecodeColumn(in.tokens(), &out->tokens)) {
    return WrongColumn("prompt.tokens", in.tokens().size(), sizeof(uint32_t));
  }
  out->segments.reserve(static_cast<size_t>(in.segments_size()));
  for (const v1::Segment& segment : in.segments()) {
    out->segments.push_back({segment.scope(), segment.end()});
  }
  out->extras.reserve(static_cast<size_t>(in.extras_size()));
  for (const v1::Extra& extra : in.extras()) {
    out->extras.push_back({extra.block(), extra.value()});
  }
  return std::nullopt;
}

std::optional<Role> DecodeRole(int role) {
  switch (role) {
    case v1::SCHEDULER:
      return Role::kScheduler;
    case v1::WORKER:
      return Role::kWorker;
    case v1::BOTH:
      return Role::kBoth;
    default:
      return std::nullopt;
  }
}

Refusal Decode(const v1::Attach& in, AttachRequest* out) {
  const std::optional<Role> role = DecodeRole(in.role());
  if (!role) {
    return Invalid("attach.role: found " + std::to_string(static_cast<int>(in.role())) +
                   "; allowed are SCHEDULER (1), WORKER (2) and BOTH (3)");
  }
  out->protocol_min = in.protocol_min();
  out->protocol_max = in.protocol_max();
  out->checksum_formula = in.checksum_formula();
  out->replica_key = in.replica_key();
  out->role = *role;
  out->shard = ShardId(in.shard());
  out->world_size = in.world_size();
  out->block_tokens = in.block_tokens();
  out->page_bytes = Bytes(in.page_bytes());
  out->fields.reserve(static_cast<size_t>(in.fields_size()));
  for (const v1::Field& field : in.fields()) out->fields.emplace_back(field.name(), field.value());
  out->prefill_tokens_per_s = in.prefill_tokens_per_s();
  out->credential = in.credential();
  out->replaces = SessionId(in.replaces());
  return std::nullopt;
}

Refusal Decode(const v1::Acquire& in, AcquireRequest* out) {
  if (in.intent() != v1::Acquire::LOOK && in.intent() != v1::Acquire::COMPUTE) {
    return Invalid("acquire.intent: found " + std::to_string(static_cast<int>(in.intent())) +
                   "; allowed are LOOK (0) and COMPUTE (1)");
  }
  const std::optional<Nanos> deadline = DecodeDeadline(in.claim_deadline_ns());
  if (!deadline) return WrongDeadline("acquire.claim_deadline_ns", in.claim_deadline_ns());
  out->request = RequestId(in.request());
  out->engine_hit_tokens = in.engine_hit_tokens();
  out->claim_deadline = *deadline;
  out->compute = in.intent() == v1::Acquire::COMPUTE;
  out->again = in.again();
  return DecodePrompt(in.prompt(), &out->prompt);
}

Refusal Decode(const v1::Await& in, AwaitRequest* out) {
  const std::optional<Nanos> until = DecodeDeadline(in.until_ns());
  if (!until) return WrongDeadline("await.until_ns", in.until_ns());
  out->ticket = in.ticket();
  out->until = *until;
  return std::nullopt;
}

Refusal Decode(const v1::Probe& in, ProbeRequest* out) {
  return DecodePrompt(in.prompt(), &out->prompt);
}

Refusal Decode(const v1::Reserve& in, ReserveRequest* out) {
  const std::optional<Nanos> deadline = DecodeDeadline(in.claim_deadline_ns());
  if (!deadline) return WrongDeadline("reserve.claim_deadline_ns", in.claim_deadline_ns());
  if (!DecodeColumn(in.append_tokens(), &out->append_tokens)) {
    return WrongColumn("reserve.append_tokens", in.append_tokens().size(), sizeof(uint32_t));
  }
  out->request = RequestId(in.request());
  out->from = in.from();
  out->to = in.to();
  out->claim_deadline = *deadline;
  return DecodePrompt(in.prompt(), &out->prompt);
}

template <class Repeated>
std::vector<ClaimId> DecodeClaims(const Repeated& in) {
  std::vector<ClaimId> claims;
  claims.reserve(static_cast<size_t>(in.size()));
  for (const uint64_t claim : in) claims.emplace_back(claim);
  return claims;
}

Refusal Decode(const v1::Begin& in, BeginRequest* out) {
  out->claims = DecodeClaims(in.claims());
  return std::nullopt;
}

Refusal Decode(const v1::Abort& in, AbortRequest* out) {
  out->claims = DecodeClaims(in.claims());
  return std::nullopt;
}

Refusal Decode(const v1::End& in, EndRequest* out) {
  out->items.reserve(static_cast<size_t>(in.items_size()));
  for (const v1::EndItem& item : in.items()) {
    EndItem& end = out->items.emplace_back();
    end.claim = ClaimId(item.claim());
    end.failed = item.failed();
    if (!DecodeColumn(item.checksums(), &end.checksums)) {
      return WrongColumn("end.checksums", item.checksums().size(), sizeof(uint64_t));
    }
    end.bad_pages.assign(item.bad_pages().begin(), item.bad_pages().end());
  }
  return std::nullopt;
}

Refusal Decode(const v1::Settle& in, SettleRequest* out) {
  out->request = RequestId(in.request());
  out->engine = in.engine();
  out->device = in.device();
  out->host = in.host();
  out->disk = in.disk();
  out->peer = in.peer();
  out->failed = in.failed();
  out->prefill_micros = in.prefill_micros();
  return std::nullopt;
}

v1::Code EncodeCode(Code code) {
  switch (code) {
    case Code::kOk:
      return v1::OK;
    case Code::kInvalid:
      return v1::INVALID;
    case Code::kLimit:
      return v1::LIMIT;
    case Code::kUnknown:
      return v1::UNKNOWN;
    case Code::kExpired:
      return v1::EXPIRED;
    case Code::kUnavailable:
      return v1::UNAVAILABLE;
  }
  return v1::INVALID;
}

void Encode(const BeginItem& item, v1::BeginItem* out) {
  out->set_claim(item.claim.value());
  out->set_code(EncodeCode(item.code));
  if (!item.message.empty()) out->set_message(item.message);
  out->set_store(item.store);
  out->set_first_block(item.first_block);
  out->set_page_bytes(item.page_bytes.value());
  EncodeColumn(item.pages, out->mutable_pages());
  EncodeColumn(item.generations, out->mutable_generations());
  EncodeColumn(item.checksums, out->mutable_checksums());
}

struct BodyEncoder {
  v1::NodeMessage* out;

  void operator()(const std::monostate&) const {}
  void operator()(const AttachAnswer& answer) const {
    v1::AttachAnswer* attach = out->mutable_attach();
    attach->set_session(answer.session.value());
    attach->set_protocol(answer.protocol);
  }
  void operator()(const AcquireAnswer& answer) const {
    v1::AcquireAnswer* acquire = out->mutable_acquire();
    acquire->set_claim(answer.claim.value());
    acquire->set_blocks(answer.blocks);
    acquire->set_in_flight(answer.in_flight);
    acquire->set_ticket(answer.ticket);
  }
  void operator()(const AwaitAnswer& answer) const {
    v1::AwaitAnswer* await = out->mutable_await();
    await->set_claim(answer.claim.value());
    await->set_blocks(answer.blocks);
    await->set_in_flight(answer.in_flight);
    await->set_peer_from(answer.peer_from);
    await->set_peer_to(answer.peer_to);
  }
  void operator()(const ProbeAnswer& answer) const {
    v1::ProbeAnswer* probe = out->mutable_probe();
    probe->set_blocks(answer.blocks);
    probe->set_in_flight(answer.in_flight);
  }
  void operator()(const ReserveAnswer& answer) const {
    v1::ReserveAnswer* reserve = out->mutable_reserve();
    reserve->set_claim(answer.claim.value());
    reserve->set_from(answer.from);
    reserve->set_to(answer.to);
    reserve->set_in_flight(answer.in_flight);
    reserve->set_full(answer.full);
  }
  void operator()(const BeginAnswer& answer) const {
    v1::BeginAnswer* begin = out->mutable_begin();
    for (const BeginItem& item : answer.items) Encode(item, begin->add_items());
  }
  void operator()(const EndAnswer& answer) const {
    v1::EndAnswer* end = out->mutable_end();
    for (const Code code : answer.codes) end->add_codes(EncodeCode(code));
  }
  void operator()(const AbortAnswer&) const { out->mutable_abort(); }
  void operator()(const SettleAnswer&) const { out->mutable_settle(); }
};

}  // namespace

void QuietParser() {
  google::protobuf::SetLogHandler(nullptr);
}

std::optional<Nanos> DecodeDeadline(uint64_t deadline_ns) {
  if (deadline_ns > static_cast<uint64_t>(std::numeric_limits<Nanos>::max())) return std::nullopt;
  return static_cast<Nanos>(deadline_ns);
}

std::optional<Answer> DecodeRequest(const v1::ClientMessage& message, RequestBody* body) {
  switch (message.body_case()) {
    case v1::ClientMessage::kAttach:
      return Decode(message.attach(), &body->emplace<AttachRequest>());
    case v1::ClientMessage::kAcquire:
      return Decode(message.acquire(), &body->emplace<AcquireRequest>());
    case v1::ClientMessage::kProbe:
      return Decode(message.probe(), &body->emplace<ProbeRequest>());
    case v1::ClientMessage::kAwait:
      return Decode(message.await(), &body->emplace<AwaitRequest>());
    case v1::ClientMessage::kReserve:
      return Decode(message.reserve(), &body->emplace<ReserveRequest>());
    case v1::ClientMessage::kBegin:
      return Decode(message.begin(), &body->emplace<BeginRequest>());
    case v1::ClientMessage::kEnd:
      return Decode(message.end(), &body->emplace<EndRequest>());
    case v1::ClientMessage::kAbort:
      return Decode(message.abort(), &body->emplace<AbortRequest>());
    case v1::ClientMessage::kSettle:
      return Decode(message.settle(), &body->emplace<SettleRequest>());
    case v1::ClientMessage::BODY_NOT_SET:
      break;
  }
  return Invalid(
      "message: found no body that this node knows; allowed are attach, acquire, probe, await, "
      "reserve, begin, end, abort and settle");
}

void EncodeAnswer(uint64_t serial, const Answer& answer, v1::NodeMessage* out) {
  out->set_serial(serial);
  out->set_code(EncodeCode(answer.code));
  if (!answer.message.empty()) out->set_message(answer.message);
  std::visit(BodyEncoder{out}, answer.body);
}

}  // namespace pando::local
