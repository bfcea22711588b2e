// Seeds that are bytes on a socket.
#include <string>

#include "node/control/peer_codec.h"
#include "node/core/hello.h"
#include "node/local/frame.h"
#include "pando/v1/client.pb.h"
#include "radix/base/check.h"
#include "tests/fuzz/seeds.h"
#include "tests/node/control/peer_examples.h"
#include "transfer/process/message_codec.h"
#include "transfer/ucx/wire.h"

namespace pando::fuzz {
namespace {

namespace wire = transfer::wire;

void AppendNumber(uint32_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> 8 * i & 0xff));
}

// ---- A session's stream

std::string Frame(const v1::ClientFrame& frame) {
  std::string bytes;
  PANDO_CHECK(local::AppendFrame(frame, &bytes)) << "a seed is too long";
  return bytes;
}

std::string AttachFrame() {
  v1::ClientFrame frame;
  v1::ClientMessage& message = *frame.add_messages();
  message.set_serial(1);
  v1::Attach& attach = *message.mutable_attach();
  attach.set_checksum_formula(1);
  attach.set_replica_key("k");
  attach.set_role(v1::BOTH);
  attach.set_world_size(1);
  attach.set_block_tokens(2);
  attach.set_page_bytes(4096);
  v1::Field& field = *attach.add_fields();
  field.set_name("model");
  field.set_value("m");
  return Frame(frame);
}

void SetPrompt(v1::Prompt* prompt) {
  std::string tokens;
  for (uint32_t i = 0; i < 9; ++i) AppendNumber(i, 4, &tokens);
  prompt->set_tokens(tokens);
  prompt->add_segments()->set_end(4);
  v1::Segment& own = *prompt->add_segments();
  own.set_scope("s");
  own.set_end(9);
  v1::Extra& extra = *prompt->add_extras();
  extra.set_block(1);
  extra.set_value("e");
}

std::string StoreFrame() {
  v1::ClientFrame frame;
  v1::ClientMessage* message = frame.add_messages();
  message->set_serial(2);
  SetPrompt(message->mutable_reserve()->mutable_prompt());
  message->mutable_reserve()->set_to(4);
  message = frame.add_messages();
  message->mutable_begin()->add_claims(1);
  message = frame.add_messages();
  v1::EndItem& item = *message->mutable_end()->add_items();
  item.set_claim(1);
  for (uint32_t i = 0; i < 4; ++i) AppendNumber(i, 8, item.mutable_checksums());
  return Frame(frame);
}

std::string LoadFrame() {
  v1::ClientFrame frame;
  v1::ClientMessage* message = frame.add_messages();
  SetPrompt(message->mutable_acquire()->mutable_prompt());
  message->mutable_acquire()->set_request(1);
  message->mutable_acquire()->set_intent(v1::Acquire::COMPUTE);
  message = frame.add_messages();
  SetPrompt(message->mutable_probe()->mutable_prompt());
  message->set_deadline_ns(9'000'000'000);
  message = frame.add_messages();
  message->mutable_begin()->add_claims(2);
  message = frame.add_messages();
  v1::EndItem& item = *message->mutable_end()->add_items();
  item.set_claim(2);
  item.add_bad_pages(1);
  message = frame.add_messages();
  message->mutable_abort()->add_claims(2);
  message = frame.add_messages();
  message->mutable_await()->set_ticket(1);
  message = frame.add_messages();
  message->mutable_settle()->set_request(1);
  message->mutable_settle()->set_host(4);
  return Frame(frame);
}

std::vector<Seed> LocalSeeds() {
  const std::string whole("\xff\x00", 2), pieces("\x02\x01", 2);
  return {{"local_frames", "session", whole + AttachFrame() + StoreFrame() + LoadFrame()},
          {"local_frames", "pieces", pieces + AttachFrame() + StoreFrame()},
          {"local_frames", "too_long", whole + AttachFrame() + std::string("\xff\xff\xff\xff", 4)}};
}

// ---- Between nodes

std::string Message(uint8_t kind, const std::string& bytes) {
  std::string out(1, static_cast<char>(kind));
  AppendNumber(static_cast<uint32_t>(bytes.size()), 2, &out);
  return out + bytes;
}

std::string Request(const PeerRequestBody& body) {
  return Message(static_cast<uint8_t>(body.index()), control::EncodeRequest(body));
}

std::string Answer(const PeerAnswerBody& body) {
  return Message(static_cast<uint8_t>(4 + body.index()), control::EncodeAnswer(body));
}

std::string Piece(const FeedPiece& piece) {
  return Message(8, control::EncodeFeed(&piece, control::ExampleTotals()));
}

std::vector<Seed> PeerSeeds() {
  std::string examples;
  for (const PeerRequestBody& request : control::ExampleRequests()) examples += Request(request);
  for (const PeerAnswerBody& answer : control::ExampleAnswers()) examples += Answer(answer);
  examples += Piece(control::ExamplePiece());
  // A hello each way that is taken, and what may follow it.
  PeerHello hello = FormulasOf("");
  hello.node_name = "node";
  hello.boot = BootId(9);
  hello.data_address = "data";
  FeedPiece snapshot;
  snapshot.boot = hello.boot;
  snapshot.sequence = snapshot.part = 1;
  snapshot.last = true;
  snapshot.adds = {1, 2, 3};
  for (const uint64_t key : snapshot.adds) snapshot.held.Add(key);
  FeedPiece delta;
  delta.boot = hello.boot;
  delta.sequence = 2;
  delta.removes = {3};
  delta.held = snapshot.held;
  delta.held.Remove(3);
  const std::string talk = Answer(HelloAnswer{PeerCode::kOk, "", hello}) + Piece(snapshot) +
                           Piece(delta) + Request(HelloRequest{hello}) +
                           Message(9, control::EncodeFeedRequest({BootId(9), BootId(), 0})) +
                           Request(DoneRequest{BootId(9), {{1, 2}}, {{{1, 2}, {0}}}}) +
                           Request(GoodbyeRequest{BootId(9), "done"});
  return {{"peer_messages", "examples", examples}, {"peer_messages", "talk", talk}};
}

// ---- Transfers

template <class T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Active(uint8_t id, const std::string& header, const std::string& payload) {
  std::string out(1, static_cast<char>(id - 1));
  AppendNumber(static_cast<uint32_t>(header.size()), 1, &out);
  AppendNumber(static_cast<uint32_t>(payload.size()), 1, &out);
  return out + header + payload;
}

std::string ActiveMessages() {
  const uint32_t position = 2;
  const std::string pages = BytesOf(wire::PagesHeader{.count = 2, .pull = 3}) +
                            BytesOf(wire::PageEntry{0, 16}) + BytesOf(wire::PageEntry{1, 16});
  return Active(wire::kAskId, BytesOf(wire::AskHeader{.count = 1, .grant_high = 1, .grant_low = 2}),
                BytesOf(wire::AskEntry{0, 1, 16})) +
         Active(wire::kPagesId, pages, std::string(16, '\0') + std::string(16, 'x')) +
         Active(wire::kRefusalId, BytesOf(wire::RefusalHeader{.reason = 1, .count = 1, .pull = 3}),
                BytesOf(position));
}

void SetPages(v1::TransferPages* pages) {
  for (uint32_t i = 0; i < 2; ++i) {
    pages->add_extent(i);
    pages->add_offset(16 * i);
    pages->add_bytes(32);
  }
}

std::vector<Seed> TransferSeeds() {
  v1::TransferCommand open, offer, pull;
  *open.mutable_open() = transfer::Encode(TransferLimits{});
  offer.mutable_offer()->mutable_grant()->set_high(1);
  SetPages(offer.mutable_offer()->mutable_pages());
  pull.mutable_pull()->set_address("a");
  for (uint32_t i = 0; i < 2; ++i) {
    pull.mutable_pull()->add_index(i);
    pull.mutable_pull()->add_checksum(i);
  }
  SetPages(pull.mutable_pull()->mutable_pages());
  v1::TransferReport report;
  transfer::Encode(PullPages{1, {{0, PageOutcome::kArrived}, {1, PageOutcome::kBad}}},
                   report.add_events());
  transfer::Encode(PullEnded{1, PullStatus::kRefused, 2, 3, true}, report.add_events());
  transfer::Encode(GrantEnded{{1, 2}, 3}, report.add_events());
  transfer::Encode(TransferCounters{.pulls = 1}, &report);
  std::string stream;
  for (const std::string& message : {offer.SerializeAsString(), pull.SerializeAsString()}) {
    AppendNumber(static_cast<uint32_t>(message.size()), 4, &stream);
    stream += message;
  }
  const std::string target = "transfer_messages";
  v1::TransferCommand extent;
  extent.set_add_extent(0);
  std::vector<Seed> ends;
  for (char way = 0; way < 6; ++way) {
    ends.push_back({target, "end_" + std::to_string(way),
                    '\0' + Active(4, std::string(1, way), "") + ActiveMessages()});
  }
  std::vector<Seed> all = {{target, "active", '\0' + ActiveMessages()},
                           {target, "extent", '\1' + extent.SerializeAsString()},
                           {target, "open", '\1' + open.SerializeAsString()},
                           {target, "offer", '\1' + offer.SerializeAsString()},
                           {target, "pull", '\1' + pull.SerializeAsString()},
                           {target, "report", '\2' + report.SerializeAsString()},
                           {target, "stream", '\3' + stream}};
  all.insert(all.end(), ends.begin(), ends.end());
  return all;
}

}  // namespace

std::vector<Seed> MessageSeeds() {
  std::vector<Seed> all = LocalSeeds();
  for (const auto& more : {PeerSeeds(), TransferSeeds()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace pando::fuzz
