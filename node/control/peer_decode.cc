#include "node/control/field_reader.h"
#include "node/control/peer_codec.h"
#include "node/core/cluster/limits.h"
#include "node/core/limits.h"
#include "node/core/problem.h"
#include "pando/v1/peer.pb.h"

namespace pando::control {
namespace {

class Reader : public FieldReader {
 public:
  void Read(const v1::PeerHello& in, PeerHello* out);
  void Read(const v1::PeerSpace& in, PeerSpace* out);
  void Read(const v1::GrantPrompt& in, PromptData* out);

  void Read(const v1::HelloRequest& in, HelloRequest* out);
  void Read(const v1::HelloAnswer& in, HelloAnswer* out);
  void Read(const v1::GrantRequest& in, GrantRequest* out);
  void Read(const v1::GrantAnswer& in, GrantAnswer* out);
  void Read(const v1::DoneRequest& in, DoneRequest* out);
  void Read(const v1::DoneAnswer& in, DoneAnswer* out) { out->unknown = in.unknown(); }
  void Read(const v1::GoodbyeRequest& in, GoodbyeRequest* out);
  void Read(const v1::GoodbyeAnswer& /*in*/, GoodbyeAnswer* /*out*/) {}
};

void Reader::Read(const v1::PeerSpace& in, PeerSpace* out) {
  Check("hello.spaces.identity: bytes", in.identity().size(), 1, limits::kIdentityBytes);
  Check("hello.spaces.block_tokens", in.block_tokens(), 1, limits::kBlockTokens);
  Check("hello.spaces.shards", in.shards(), 1, limits::kShards);
  Check("hello.spaces.page_bytes", in.page_bytes(), 1, limits::kPageBytes);
  *out = {in.identity(), in.block_tokens(), in.shards(), Bytes(in.page_bytes())};
}

void Reader::Read(const v1::PeerHello& in, PeerHello* out) {
  Check("hello.protocol_min", in.protocol_min(), 0, in.protocol_max());
  Check("hello.node_name: bytes", in.node_name().size(), 1, limits::kNodeNameBytes);
  Check("hello.data_address: bytes", in.data_address().size(), 0, limits::kDataAddressBytes);
  Check("hello.spaces", static_cast<uint64_t>(in.spaces_size()), 0, limits::kSpaces);
  if (!ok()) return;
  out->protocol_min = in.protocol_min();
  out->protocol_max = in.protocol_max();
  out->node_name = in.node_name();
  out->boot = ReadBoot("hello.boot_id", in.boot_id());
  out->hash_formula = in.hash_formula();
  out->seed_check = in.seed_check();
  out->checksum_formula = in.checksum_formula();
  out->data_address = in.data_address();
  for (const v1::PeerSpace& space : in.spaces()) Read(space, &out->spaces.emplace_back());
}

void Reader::Read(const v1::HelloRequest& in, HelloRequest* out) {
  if (!in.has_hello()) Refuse("hello: found none; a node introduces itself with all of it");
  Read(in.hello(), &out->hello);
}

void Reader::Read(const v1::HelloAnswer& in, HelloAnswer* out) {
  out->code = ReadCode(in.code());
  Check("message: bytes", in.message().size(), 0, limits::kPeerTextBytes);
  out->message = in.message();
  // Only a request that was malformed is refused without it.
  if (in.has_hello() || out->code == PeerCode::kOk) Read(in.hello(), &out->hello);
}

void Reader::Read(const v1::GrantPrompt& in, PromptData* out) {
  ReadColumn("prompt.tokens", in.tokens(), limits::kTokensPerPrompt, &out->tokens);
  Check("prompt.segments", static_cast<uint64_t>(in.segments_size()), 0, limits::kSegments);
  Check("prompt.extras", static_cast<uint64_t>(in.extras_size()), 0, out->tokens.size());
  if (!ok()) return;
  out->segments.reserve(static_cast<size_t>(in.segments_size()));
  for (const v1::GrantPrompt::Segment& segment : in.segments()) {
    Check("prompt.segments.scope: bytes", segment.scope().size(), 0, limits::kScopeBytes);
    out->segments.push_back({segment.scope(), segment.end()});
  }
  out->extras.reserve(static_cast<size_t>(in.extras_size()));
  for (const v1::GrantPrompt::Extra& extra : in.extras()) {
    Check("prompt.extras.value: bytes", extra.value().size(), 0, limits::kExtraBytes);
    out->extras.push_back({extra.block(), extra.value()});
  }
}

void Reader::Read(const v1::GrantRequest& in, GrantRequest* out) {
  out->requester = ReadBoot("requester_boot_id", in.requester_boot_id());
  out->boot = ReadBoot("boot_id", in.boot_id());
  Check("space_identity: bytes", in.space_identity().size(), 1, limits::kIdentityBytes);
  Check("shards", in.shards(), 1, limits::kShards);
  Check("to", in.to(), uint64_t{in.from()} + 1, limits::kTokensPerPrompt);
  out->life = ReadLife("life_ms", in.life_ms());
  if (!ok()) return;
  out->space_identity = in.space_identity();
  out->shards = in.shards();
  out->from = in.from();
  out->to = in.to();
  switch (in.chain_case()) {
    case v1::GrantRequest::kOfGrant:
      out->of_grant = ReadGrant("of_grant", in.of_grant());
      return;
    case v1::GrantRequest::kPrompt:
      return Read(in.prompt(), &out->prompt);
    case v1::GrantRequest::CHAIN_NOT_SET:
      return Refuse("chain: found none; say the prompt, or a live grant that has it");
  }
}

void Reader::Read(const v1::GrantAnswer& in, GrantAnswer* out) {
  out->code = ReadCode(in.code());
  Check("message: bytes", in.message().size(), 0, limits::kPeerTextBytes);
  out->message = in.message();
  out->boot = BootId(in.boot_id());
  if (out->code != PeerCode::kOk) return;
  out->boot = ReadBoot("boot_id", in.boot_id());
  out->grant = ReadGrant("grant", in.grant());
  Check("to", in.to(), uint64_t{in.from()} + 1, limits::kTokensPerPrompt);
  Check("page_bytes", in.page_bytes(), 1, limits::kPageBytes);
  ReadColumn("generations", in.generations(), limits::kPagesPerGrant, &out->generations);
  ReadColumn("checksums", in.checksums(), limits::kPagesPerGrant, &out->checksums);
  out->life = ReadLife("life_ms", in.life_ms());
  if (!ok()) return;
  const size_t pages = out->generations.size(), blocks = in.to() - in.from();
  if (pages != out->checksums.size()) {
    return Refuse(Text("generations: found ", pages, " beside ", out->checksums.size(),
                       " checksums; each page has one of both"));
  }
  if (pages == 0 || pages % blocks != 0 || pages / blocks > limits::kShards) {
    return Refuse(Text("generations: found ", pages, " for ", blocks,
                       " blocks; each block has one a shard, of 1 to ", limits::kShards));
  }
  out->from = in.from();
  out->to = in.to();
  out->page_bytes = Bytes(in.page_bytes());
}

void Reader::Read(const v1::DoneRequest& in, DoneRequest* out) {
  out->requester = ReadBoot("requester_boot_id", in.requester_boot_id());
  Check("grants", static_cast<uint64_t>(in.grants_size()), 0, limits::kGrantsPerDone);
  Check("bad", static_cast<uint64_t>(in.bad_size()), 0, limits::kGrantsPerDone);
  if (!ok()) return;
  for (const v1::GrantName& grant : in.grants()) out->grants.push_back(ReadGrant("grants", grant));
  for (const v1::BadPages& bad : in.bad()) {
    BadPages& one = out->bad.emplace_back();
    one.grant = ReadGrant("bad.grant", bad.grant());
    ReadColumn("bad.pages", bad.pages(), limits::kPagesPerGrant, &one.pages);
  }
}

void Reader::Read(const v1::GoodbyeRequest& in, GoodbyeRequest* out) {
  out->boot = ReadBoot("boot_id", in.boot_id());
  Check("reason: bytes", in.reason().size(), 0, limits::kPeerTextBytes);
  out->reason = in.reason();
}

// A Message of the wire as a Value, which is one alternative of Body.
template <class Message, class Value, class Body>
std::variant<Body, Malformed> Decode(const char* name, std::string_view bytes) {
  Message message;
  Reader reader;
  Value value;
  if (reader.Parse(name, bytes, &message)) reader.Read(message, &value);
  if (!reader.ok()) return reader.wrong();
  return Body(std::move(value));
}

}  // namespace

std::variant<PeerRequestBody, Malformed> DecodeRequest(PeerCall call, std::string_view bytes) {
  using Body = PeerRequestBody;
  switch (call) {
    case PeerCall::kHello:
      return Decode<v1::HelloRequest, HelloRequest, Body>("HelloRequest", bytes);
    case PeerCall::kGrant:
      return Decode<v1::GrantRequest, GrantRequest, Body>("GrantRequest", bytes);
    case PeerCall::kDone:
      return Decode<v1::DoneRequest, DoneRequest, Body>("DoneRequest", bytes);
    case PeerCall::kGoodbye:
      return Decode<v1::GoodbyeRequest, GoodbyeRequest, Body>("GoodbyeRequest", bytes);
  }
  return Malformed{"no such call"};
}

std::variant<PeerAnswerBody, Malformed> DecodeAnswer(PeerCall call, std::string_view bytes) {
  using Body = PeerAnswerBody;
  switch (call) {
    case PeerCall::kHello:
      return Decode<v1::HelloAnswer, HelloAnswer, Body>("HelloAnswer", bytes);
    case PeerCall::kGrant:
      return Decode<v1::GrantAnswer, GrantAnswer, Body>("GrantAnswer", bytes);
    case PeerCall::kDone:
      return Decode<v1::DoneAnswer, DoneAnswer, Body>("DoneAnswer", bytes);
    case PeerCall::kGoodbye:
      return Decode<v1::GoodbyeAnswer, GoodbyeAnswer, Body>("GoodbyeAnswer", bytes);
  }
  return Malformed{"no such call"};
}

std::optional<PeerAnswerBody> RefusalOf(PeerCall call, const Malformed& malformed) {
  switch (call) {
    case PeerCall::kHello:
      return HelloAnswer{PeerCode::kInvalid, malformed.message, {}};
    case PeerCall::kGrant: {
      GrantAnswer answer;
      answer.code = PeerCode::kInvalid;
      answer.message = malformed.message;
      return answer;
    }
    case PeerCall::kDone:
    case PeerCall::kGoodbye:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace pando::control
