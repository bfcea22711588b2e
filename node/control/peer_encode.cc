#include <bit>
#include <type_traits>

#include "node/control/peer_codec.h"
#include "node/core/cluster/limits.h"
#include "node/core/problem.h"
#include "pando/v1/peer.pb.h"

namespace pando::control {
namespace {

static_assert(std::endian::native == std::endian::little, "packed columns are little-endian");

constexpr Nanos kNanosPerMilli = 1'000'000;

template <class T>
void WriteColumn(const std::vector<T>& values, std::string* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A life of less than a millisecond is one of one, not none.
uint32_t Millis(Nanos life) {
  return static_cast<uint32_t>((life + kNanosPerMilli - 1) / kNanosPerMilli);
}

std::string Cut(const std::string& text) {
  constexpr size_t kDots = 3;
  return Quotable(text, limits::kPeerTextBytes - kDots);
}

v1::PeerCode CodeOf(PeerCode code) {
  return static_cast<v1::PeerCode>(code);
}
static_assert(static_cast<int>(PeerCode::kOk) == v1::PEER_OK);
static_assert(static_cast<int>(PeerCode::kInvalid) == v1::PEER_INVALID);
static_assert(static_cast<int>(PeerCode::kIncompatible) == v1::PEER_INCOMPATIBLE);
static_assert(static_cast<int>(PeerCode::kUnknown) == v1::PEER_UNKNOWN);
static_assert(static_cast<int>(PeerCode::kMiss) == v1::PEER_MISS);
static_assert(static_cast<int>(PeerCode::kBusy) == v1::PEER_BUSY);

void Write(const GrantId& grant, v1::GrantName* out) {
  out->set_high(grant.high);
  out->set_low(grant.low);
}

void Write(const PeerHello& hello, v1::PeerHello* out) {
  out->set_protocol_min(hello.protocol_min);
  out->set_protocol_max(hello.protocol_max);
  out->set_node_name(hello.node_name);
  out->set_boot_id(hello.boot.value());
  out->set_hash_formula(hello.hash_formula);
  out->set_seed_check(hello.seed_check);
  out->set_checksum_formula(hello.checksum_formula);
  out->set_data_address(hello.data_address);
  for (const PeerSpace& space : hello.spaces) {
    v1::PeerSpace* one = out->add_spaces();
    one->set_identity(space.identity);
    one->set_block_tokens(space.block_tokens);
    one->set_shards(space.shards);
    one->set_page_bytes(space.page_bytes.value());
  }
}

void Write(const PromptData& prompt, v1::GrantPrompt* out) {
  WriteColumn(prompt.tokens, out->mutable_tokens());
  for (const PromptData::SegmentData& segment : prompt.segments) {
    v1::GrantPrompt::Segment* one = out->add_segments();
    one->set_scope(segment.scope);
    one->set_end(segment.end);
  }
  for (const PromptData::ExtraData& extra : prompt.extras) {
    v1::GrantPrompt::Extra* one = out->add_extras();
    one->set_block(extra.block);
    one->set_value(extra.bytes);
  }
}

std::string BytesOf(const HelloRequest& in) {
  v1::HelloRequest out;
  Write(in.hello, out.mutable_hello());
  return out.SerializeAsString();
}

std::string BytesOf(const HelloAnswer& in) {
  v1::HelloAnswer out;
  out.set_code(CodeOf(in.code));
  out.set_message(Cut(in.message));
  const bool introduced = in.code == PeerCode::kOk || in.hello.boot != BootId(0);
  if (introduced) Write(in.hello, out.mutable_hello());
  return out.SerializeAsString();
}

std::string BytesOf(const GrantRequest& in) {
  v1::GrantRequest out;
  out.set_requester_boot_id(in.requester.value());
  out.set_boot_id(in.boot.value());
  out.set_space_identity(in.space_identity);
  out.set_shards(in.shards);
  if (in.of_grant) {
    Write(*in.of_grant, out.mutable_of_grant());
  } else {
    Write(in.prompt, out.mutable_prompt());
  }
  out.set_from(in.from);
  out.set_to(in.to);
  out.set_life_ms(Millis(in.life));
  return out.SerializeAsString();
}

std::string BytesOf(const GrantAnswer& in) {
  v1::GrantAnswer out;
  out.set_code(CodeOf(in.code));
  out.set_message(Cut(in.message));
  out.set_boot_id(in.boot.value());
  if (in.code != PeerCode::kOk) return out.SerializeAsString();
  Write(in.grant, out.mutable_grant());
  out.set_from(in.from);
  out.set_to(in.to);
  out.set_page_bytes(in.page_bytes.value());
  WriteColumn(in.generations, out.mutable_generations());
  WriteColumn(in.checksums, out.mutable_checksums());
  out.set_life_ms(Millis(in.life));
  return out.SerializeAsString();
}

std::string BytesOf(const DoneRequest& in) {
  v1::DoneRequest out;
  out.set_requester_boot_id(in.requester.value());
  for (const GrantId& grant : in.grants) Write(grant, out.add_grants());
  for (const BadPages& bad : in.bad) {
    v1::BadPages* one = out.add_bad();
    Write(bad.grant, one->mutable_grant());
    WriteColumn(bad.pages, one->mutable_pages());
  }
  return out.SerializeAsString();
}

std::string BytesOf(const DoneAnswer& in) {
  v1::DoneAnswer out;
  out.set_unknown(in.unknown);
  return out.SerializeAsString();
}

std::string BytesOf(const GoodbyeRequest& in) {
  v1::GoodbyeRequest out;
  out.set_boot_id(in.boot.value());
  out.set_reason(Cut(in.reason));
  return out.SerializeAsString();
}

std::string BytesOf(const GoodbyeAnswer& /*in*/) {
  return v1::GoodbyeAnswer().SerializeAsString();
}

void Write(const FeedPiece& piece, v1::FeedMessage* out) {
  out->set_boot_id(piece.boot.value());
  out->set_sequence(piece.sequence);
  out->set_part(piece.part);
  out->set_last(piece.last);
  WriteColumn(piece.removes, out->mutable_removes());
  WriteColumn(piece.adds, out->mutable_adds());
  WriteColumn(piece.prefill_removes, out->mutable_prefill_removes());
  WriteColumn(piece.prefill_adds, out->mutable_prefill_adds());
  out->set_digest(piece.held.digest);
  out->set_blocks(piece.held.keys);
  out->set_prefill_digest(piece.prefilling.digest);
  out->set_prefill_blocks(piece.prefilling.keys);
}

void Write(const NodeTotals& totals, v1::NodeCounters* out) {
  out->set_requests(totals.account.requests);
  out->set_prompt(totals.account.prompt);
  out->set_hit_engine(totals.account.hit_engine);
  out->set_hit_device(totals.account.hit_device);
  out->set_hit_host(totals.account.hit_host);
  out->set_hit_disk(totals.account.hit_disk);
  out->set_hit_peer(totals.account.hit_peer);
  out->set_computed(totals.account.computed);
  out->set_failed(totals.account.failed);
  out->set_pages(totals.pages);
  out->set_pages_free(totals.pages_free);
  out->set_blocks(totals.blocks);
  out->set_uptime_ms(totals.uptime_ms);
}

}  // namespace

std::string EncodeRequest(const PeerRequestBody& body) {
  return std::visit([](const auto& request) { return BytesOf(request); }, body);
}

std::string EncodeAnswer(const PeerAnswerBody& body) {
  return std::visit([](const auto& answer) { return BytesOf(answer); }, body);
}

std::string EncodeFeedRequest(const FeedRequest& request) {
  v1::FeedRequest out;
  out.set_requester_boot_id(request.requester.value());
  out.set_boot_id(request.boot.value());
  out.set_sequence(request.sequence);
  return out.SerializeAsString();
}

std::string EncodeFeed(const FeedPiece* piece, const std::optional<NodeTotals>& totals) {
  v1::FeedMessage out;
  if (piece != nullptr) Write(*piece, &out);
  if (totals) Write(*totals, out.mutable_counters());
  return out.SerializeAsString();
}

}  // namespace pando::control
