// One message of each kind with every field set, for tests of the protocol between nodes.
#ifndef PANDO_TESTS_NODE_CONTROL_PEER_EXAMPLES_H_
#define PANDO_TESTS_NODE_CONTROL_PEER_EXAMPLES_H_

#include <vector>

#include "node/core/peer_messages.h"

namespace pando::control {

inline PeerHello ExampleHello() {
  PeerHello hello;
  hello.protocol_max = 2;
  hello.node_name = "node-a";
  hello.boot = BootId(0xb001);
  hello.hash_formula = 1;
  hello.seed_check = ~0ull;
  hello.checksum_formula = 1;
  hello.data_address = "127.0.0.1:7002";
  hello.spaces = {{std::string("model\0a", 7), 16, 2, Bytes(65536)}, {"b", 32, 1, Bytes(1)}};
  return hello;
}

inline GrantRequest ExampleGrant() {
  GrantRequest grant;
  grant.requester = BootId(1);
  grant.boot = BootId(2);
  grant.space_identity = "identity";
  grant.shards = 2;
  grant.prompt.tokens = {0, 1, 0xffffffff, 7};
  grant.prompt.segments = {{"", 2}, {"tenant", 4}};
  grant.prompt.extras = {{0, std::string("\0\xff", 2)}, {1, ""}};
  grant.from = 1;
  grant.to = 2;
  grant.life = 1'500'000'000;
  return grant;
}

inline GrantRequest ExampleGrantOfGrant() {
  GrantRequest grant = ExampleGrant();
  grant.prompt = {};
  grant.of_grant = GrantId{5, 6};
  return grant;
}

inline std::vector<PeerRequestBody> ExampleRequests() {
  return {HelloRequest{ExampleHello()}, ExampleGrant(), ExampleGrantOfGrant(),
          DoneRequest{BootId(3), {{1, 2}, {3, 4}}, {{{1, 2}, {0, 9}}}},
          GoodbyeRequest{BootId(4), "drained"}};
}

inline GrantAnswer ExampleGranted() {
  GrantAnswer answer;
  answer.boot = BootId(9);
  answer.grant = {7, 8};
  answer.from = 1;
  answer.to = 3;
  answer.page_bytes = Bytes(4096);
  answer.generations = {1, 2, 3, 4};
  answer.checksums = {11, 12, 13, ~0ull};
  answer.life = 2'000'000'000;
  return answer;
}

inline GrantAnswer ExampleMiss() {
  GrantAnswer answer;
  answer.code = PeerCode::kMiss;
  answer.message = "block 3 has gone";
  answer.boot = BootId(9);
  return answer;
}

inline std::vector<PeerAnswerBody> ExampleAnswers() {
  return {HelloAnswer{PeerCode::kIncompatible, "another secret", ExampleHello()},
          HelloAnswer{PeerCode::kOk, "", ExampleHello()},
          ExampleGranted(),
          ExampleMiss(),
          DoneAnswer{3},
          GoodbyeAnswer{}};
}

inline FeedPiece ExamplePiece() {
  FeedPiece piece;
  piece.boot = BootId(12);
  piece.sequence = 34;
  piece.part = 2;
  piece.last = true;
  piece.removes = {1};
  piece.adds = {2, ~0ull};
  piece.prefill_removes = {4, 5, 6};
  piece.prefill_adds = {7};
  piece.held = {21, 22};
  piece.prefilling = {23, 24};
  return piece;
}

inline NodeTotals ExampleTotals() {
  NodeTotals totals;
  totals.account.requests = 1;
  totals.account.prompt = 2;
  totals.account.hit_engine = 3;
  totals.account.hit_device = 4;
  totals.account.hit_host = 5;
  totals.account.hit_disk = 6;
  totals.account.hit_peer = 7;
  totals.account.computed = 8;
  totals.account.failed = 9;
  totals.pages = 10;
  totals.pages_free = 11;
  totals.blocks = 12;
  totals.uptime_ms = 13;
  return totals;
}

}  // namespace pando::control

#endif  // PANDO_TESTS_NODE_CONTROL_PEER_EXAMPLES_H_
