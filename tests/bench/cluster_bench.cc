// What sharing between nodes is worth: ten cores joined by a simulated network play the whole
// conversation trace, each request on a random node, and every node asks the others for what it
// does not hold. Pages carry no bytes here.
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "node/core/limits.h"
#include "radix/base/check.h"
#include "tests/bench/figure.h"
#include "tests/cluster/peer_net.h"
#include "tests/model/trace.h"
#include "tests/paths.h"

namespace pando::bench {
namespace {

using testing::PeerNet;

constexpr uint32_t kBlocksPerNode = 5'860;
constexpr Nanos kBetweenRequests = 300'000'000;  // 12,031 in an hour, as in the trace

struct Node {
  std::unique_ptr<NodeCore> core;
  std::vector<Answer> answers;
};

class Cluster {
 public:
  Cluster(uint32_t nodes, uint32_t blocks_per_node)
      : net_(LoopbackOptions{.limits = {}, .carry_bytes = false}), nodes_(nodes) {
    // Extents of equal size that make up the capacity.
    uint32_t extent_pages = blocks_per_node;
    while (extent_pages > 1u << kPageIndexBits) extent_pages /= 2;
    const uint32_t extents = blocks_per_node / extent_pages;
    for (uint32_t i = 0; i < nodes; ++i) {
      NodeCore::Options options;
      options.cache.space_share = 1.0;
      options.cache.extent_pages_max = extent_pages;
      options.slab_bytes = Bytes(kExtentBytes.value() * extents);
      nodes_[i].core = std::make_unique<NodeCore>(options);
      net_.Add({"node-" + std::to_string(i), [this, i](Input input) { Step(i, std::move(input)); },
                [](PageId, Bytes bytes) { return std::span(NoMemory(), bytes.value()); }});
    }
    net_.SetTime(now_);
    for (uint32_t i = 0; i < nodes; ++i) {
      net_.Start(i, BootId(i + 1));
      for (uint32_t e = 0; e < extents; ++e) Step(i, ExtentReady{ExtentId(e)});
      Step(i, SessionOpened{kSession});
      AttachRequest attach;
      attach.checksum_formula = limits::kChecksumFormula;
      attach.replica_key = "replica";
      attach.block_tokens = model::kTraceBlockTokens;
      attach.page_bytes = kPageStrideMin;
      attach.fields = {{"model", "trace"}};
      attach.has_pidfd = true;
      attach.process = 1;
      Ask<AttachAnswer>(i, attach);
    }
    Pass(1'000'000'000);
  }

  // Plays one request on one node; returns its hit tokens.
  uint64_t Play(uint32_t i, uint64_t number, const std::vector<uint32_t>& tokens) {
    const RequestId request(number);
    const auto acquired = Ask<AcquireAnswer>(i, AcquireRequest{request, Prompt(tokens), 0, 0});
    ClaimId claim = acquired.claim;
    uint32_t blocks = acquired.blocks;
    if (acquired.ticket != 0) {
      Send(i, AwaitRequest{acquired.ticket, now_ + 20'000'000'000});
      while (nodes_[i].answers.empty()) {
        if (!net_.Deliver()) Pass(1'000'000);
      }
      const auto awaited = Take<AwaitAnswer>(i);
      if (awaited.claim != ClaimId()) claim = awaited.claim;
      blocks = awaited.blocks;
    }
    if (claim != ClaimId()) Copy(i, claim);
    ReserveRequest reserve;
    reserve.request = request;
    reserve.to = static_cast<uint32_t>(tokens.size() / model::kTraceBlockTokens);
    const auto reserved = Ask<ReserveAnswer>(i, std::move(reserve));
    if (reserved.claim != ClaimId()) Copy(i, reserved.claim);
    SettleRequest settle;
    settle.request = request;
    settle.host = uint64_t{blocks} * model::kTraceBlockTokens;
    Ask<SettleAnswer>(i, settle);
    Pass(kBetweenRequests);
    return settle.host;
  }

  Account Sum() const {
    Account sum;
    for (const Node& node : nodes_) {
      const Account account = node.core->status().account;
      sum.prompt += account.prompt;
      sum.hit_host += account.hit_host;
      sum.hit_peer += account.hit_peer;
    }
    return sum;
  }

 private:
  static constexpr SessionId kSession{1};

  // Never touched: no bytes are carried.
  static std::byte* NoMemory() {
    static std::byte page[1];
    return page;
  }
  static PromptData Prompt(const std::vector<uint32_t>& tokens) { return {tokens, {}, {}}; }

  void Step(uint32_t i, Input input) {
    std::vector<Output> outputs;
    nodes_[i].core->Step(now_, std::move(input), &outputs);
    for (Output& output : outputs) {
      if (auto* send = std::get_if<SendAnswer>(&output)) {
        nodes_[i].answers.push_back(std::move(send->answer));
      } else {
        net_.Carry(i, &output);
      }
    }
  }
  void Send(uint32_t i, RequestBody body) {
    Step(i, SessionRequest{kSession, ++serial_, 0, std::move(body)});
  }
  template <class Body>
  Body Take(uint32_t i) {
    PANDO_CHECK(nodes_[i].answers.size() == 1) << "one answer a request";
    Answer answer = std::move(nodes_[i].answers.front());
    nodes_[i].answers.clear();
    PANDO_CHECK(answer.code == Code::kOk) << answer.message;
    return std::get<Body>(std::move(answer.body));
  }
  template <class Body>
  Body Ask(uint32_t i, RequestBody body) {
    Send(i, std::move(body));
    return Take<Body>(i);
  }
  void Copy(uint32_t i, ClaimId claim) {
    const auto begun = Ask<BeginAnswer>(i, BeginRequest{{claim}});
    EndItem end;
    end.claim = claim;
    if (begun.items[0].store) end.checksums.resize(begun.items[0].pages.size());
    Ask<EndAnswer>(i, EndRequest{{end}});
  }
  void Pass(Nanos time) {
    while (net_.Deliver()) {
    }
    now_ += time;
    net_.SetTime(now_);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].core->next_deadline() <= now_) Step(i, Tick{});
    }
    while (net_.Deliver()) {
    }
  }

  PeerNet net_;
  std::vector<Node> nodes_;
  Nanos now_ = 1'000'000'000;
  uint64_t serial_ = 0;
};

struct Rates {
  double all = 0, local = 0;
};

Rates Play(const std::vector<model::TraceRequest>& trace, uint32_t nodes, uint32_t blocks,
           uint32_t seed) {
  Cluster cluster(nodes, blocks);
  std::mt19937 random(seed);
  std::vector<uint32_t> tokens;
  uint64_t input = 0, hits = 0;
  for (size_t r = 0; r < trace.size(); ++r) {
    tokens.clear();
    model::AppendTokens(trace[r], r, false, &tokens);
    tokens.push_back(0);  // so that all full blocks may be loaded
    input += trace[r].input_length;
    hits += cluster.Play(static_cast<uint32_t>(random() % nodes), r + 1, tokens);
  }
  const Account sum = cluster.Sum();
  PANDO_CHECK(sum.hit_host + sum.hit_peer == hits) << "hits of replicas and of nodes differ";
  return {static_cast<double>(hits) / static_cast<double>(input),
          static_cast<double>(sum.hit_host) / static_cast<double>(input)};
}

int Main(int argc, char** argv) {
  Report report(argc, argv);
  const auto trace = model::ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz");
  PANDO_CHECK(!trace.empty()) << "no trace";
  const Rates pooled = Play(trace, 1, 10 * kBlocksPerNode, 1);
  constexpr uint32_t kSeeds = 5;
  double sum = 0, local = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const Rates rates = Play(trace, 10, kBlocksPerNode, seed);
    sum += rates.all;
    local += rates.local;
  }
  char reference[160];
  std::snprintf(reference, sizeof(reference),
                "hit tokens of all input tokens, mean of %u seeds; %.4f of it local; one node with "
                "all the memory %.4f",
                kSeeds, local / kSeeds, pooled.all);
  report.Add({.name = "cluster/hit_rate/ten_nodes",
              .value = sum / kSeeds,
              .unit = "ratio",
              .at_most = std::nullopt,
              .at_least = 0.358,
              .reference = reference});
  return report.Finish();
}

}  // namespace
}  // namespace pando::bench

int main(int argc, char** argv) {
  return pando::bench::Main(argc, argv);
}
