#include "tests/bench/pull_bench_nodes.h"

#include <poll.h>

#include <string>

#include "tests/bench/bench_client.h"
#include "tests/bench/pull_bench_peer.h"
#include "tests/e2e/process/peer_flags.h"

namespace pando::bench {
namespace {

constexpr int64_t kPatience = 60'000'000'000;

std::vector<uint32_t> PromptOf(unsigned seed) {
  std::vector<uint32_t> tokens(kPulled * kBlockTokens + 1);  // the last is computed in any case
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = seed * 1'000'003 + i;
  return tokens;
}

int64_t Deadline() {
  return client::NowNanos() + kPatience;
}

}  // namespace

NodePair::NodePair(size_t page_bytes) : page_bytes_(page_bytes) {
  const std::vector<std::string> ports = e2e::FreePorts(2);
  // Three lots fit: what came first is evicted, as in a node that has run for a while.
  const std::string slab = std::to_string((3 * kPulled * page_bytes >> 20) + 128) + "MiB";
  const std::vector<std::string> more = {"--space-share", "1"};
  Pin(kOwnerCore);
  owner_ =
      std::make_unique<e2e::NodeProcess>(e2e::PeerFlags("owner", ports[0], ports[1], more), slab);
  Pin(kRequesterCore);
  asker_ =
      std::make_unique<e2e::NodeProcess>(e2e::PeerFlags("asker", ports[1], ports[0], more), slab);
  constexpr uint64_t kPrefill = 1000;  // slow enough that a fetch always pays
  there_ = Attach(owner_->socket(), "bench", page_bytes, kPrefill);
  here_ = Attach(asker_->socket(), "bench", page_bytes, kPrefill);
}

void NodePair::Prepare(unsigned seed) {
  StorePrompt(there_.get(), PromptOf(seed), page_bytes_);
}

double NodePair::Pull(unsigned seed) {
  const std::vector<uint32_t> tokens = PromptOf(seed);
  for (const int64_t until = Deadline(); client::NowNanos() < until; poll(nullptr, 0, 20)) {
    const uint64_t request = ++requests_;
    const double start = Seconds();
    auto acquire = here_->StartAcquire(request, {tokens, {}, {}}, 0, Deadline(), Deadline(),
                                       client::Intent::kCompute);
    const uint64_t ticket = here_->Wait(acquire).ticket;
    client::AwaitResult got;
    if (ticket != 0) {
      auto await = here_->StartAwait(ticket, Deadline() - kPatience / 2, Deadline());
      got = here_->Wait(await);
    }
    const double took = Seconds() - start;
    if (got.claim) here_->Abort({&got.claim, 1});
    auto settle = here_->StartSettle(request, {}, Deadline());
    here_->Wait(settle);
    if (ticket == 0) continue;  // the other one's feed has not come yet
    if (got.blocks != kPulled) Fail("only " + std::to_string(got.blocks) + " blocks came");
    return took;
  }
  Fail("the peer's pages are not asked for");
}

}  // namespace pando::bench
