#include "node/core/hello.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "node/core/limits.h"
#include "node/core/problem.h"
#include "radix/key/block_key.h"

namespace pando {
namespace {

uint64_t SeedCheck(std::string_view key_secret) {
  std::array<uint32_t, 16> tokens;
  std::iota(tokens.begin(), tokens.end(), 0);
  const KeyChain keys(key_secret);
  return keys.Block(keys.Root("pando", ""), tokens, "").low;
}

}  // namespace

PeerHello FormulasOf(std::string_view key_secret) {
  PeerHello hello;
  hello.protocol_min = limits::kPeerProtocolMin;
  hello.protocol_max = limits::kPeerProtocolMax;
  hello.hash_formula = limits::kHashFormula;
  hello.seed_check = SeedCheck(key_secret);
  hello.checksum_formula = limits::kChecksumFormula;
  return hello;
}

std::optional<std::string> CheckHello(const PeerHello& mine, const PeerHello& theirs) {
  if (theirs.protocol_min > mine.protocol_max || theirs.protocol_max < mine.protocol_min) {
    return Text("peer protocol ", theirs.protocol_min, " to ", theirs.protocol_max, " found, ",
                mine.protocol_min, " to ", mine.protocol_max,
                " allowed: upgrade the older of the two nodes");
  }
  if (theirs.hash_formula != mine.hash_formula) {
    return Text("hash formula ", theirs.hash_formula, " found, ", mine.hash_formula,
                " expected: run one version in the cluster");
  }
  if (theirs.seed_check != mine.seed_check) {
    return "another key secret found: give all nodes of the cluster the same --key-secret";
  }
  if (theirs.checksum_formula != mine.checksum_formula) {
    return Text("checksum formula ", theirs.checksum_formula, " found, ", mine.checksum_formula,
                " expected: run one version in the cluster");
  }
  if (theirs.boot == BootId() || theirs.node_name.empty()) {
    return "a hello without a boot id or a node name found: both are needed";
  }
  if (theirs.node_name == mine.node_name && theirs.boot != mine.boot) {
    return Text("another node named ", Quotable(theirs.node_name),
                " found: give each node its own --name");
  }
  return std::nullopt;
}

}  // namespace pando
