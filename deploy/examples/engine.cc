// The smallest engine: one process, one prompt. Run it twice, beside one node or beside two that
// are peers: the first run computes and stores, the second loads.
//
//   example_engine unix:/run/pando/node.sock
//   computed 6 blocks, loaded 0          and then          computed 0 blocks, loaded 6
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "client/client.h"

namespace {

using namespace pando::client;

constexpr uint32_t kBlockTokens = 16;
constexpr uint64_t kPageBytes = 4096;  // the KV of one block: all layers, keys and values

// An engine's own KV cache: here one piece a block, in truth one a layer.
std::vector<std::vector<std::byte>> kv;

int64_t In(int64_t millis) {
  return NowNanos() + millis * 1'000'000;
}

// Copies a claim's pages into the engine's KV, or the engine's KV into its pages.
bool Copy(Client* client, const Claim& claim) {
  Call<BeginResult> call = client->StartBegin({&claim, 1}, In(1000));
  BeginResult& begun = client->Wait(call);
  if (begun.code != Code::kOk || begun.codes[0] != Code::kOk) return false;
  Hold& hold = begun.holds[0];
  bool good = true;
  for (uint32_t i = 0; good && i < hold.pages(); ++i) {
    std::vector<std::byte>& block = kv[hold.first_block() + i];
    const std::span<std::byte> to[] = {block};
    const std::span<const std::byte> from[] = {block};
    good = hold.store() ? hold.Store(i, from) : hold.Load(i, to);
  }
  Call<EndResult> end = client->StartEnd(std::move(hold), In(1000));
  return client->Wait(end).code == Code::kOk && good;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.socket = argc > 1 ? argv[1] : "unix:/run/pando/node.sock";
  options.replica_key = "example";
  options.block_tokens = kBlockTokens;
  options.page_bytes = kPageBytes;
  options.fields = {{"model", "example"}};  // and all else that shapes the KV
  const auto client = Client::Create(options);
  if (!client->WaitAttached(In(2000))) {
    std::fprintf(stderr, "no node: %s\n", client->last_error().c_str());
    return 1;
  }
  std::vector<uint32_t> tokens(100);
  std::iota(tokens.begin(), tokens.end(), 0u);
  const auto blocks = static_cast<uint32_t>(tokens.size() / kBlockTokens);
  kv.assign(blocks, std::vector<std::byte>(kPageBytes));

  // What is there already? The claim's own deadline bounds how long its pages stay ours.
  constexpr uint64_t kRequest = 1;
  auto acquire =
      client->StartAcquire(kRequest, {tokens, {}, {}}, 0, In(10'000), In(1000), Intent::kCompute);
  const AcquireResult& hit = client->Wait(acquire);
  Claim claim = hit.claim;
  uint32_t found = hit.blocks;
  if (hit.ticket != 0) {  // a peer has more, or another engine computes it: wait a little
    auto await = client->StartAwait(hit.ticket, In(500), In(1000));
    const AwaitResult& more = client->Wait(await);
    if (more.claim) {
      claim = more.claim;
      found = more.blocks;
    }
  }
  const uint32_t loaded = claim && Copy(client.get(), claim) ? found : 0;

  // The engine computes the rest (here it would run its model), then offers it to the others.
  auto reserve = client->StartReserve(kRequest, {}, {}, loaded, blocks, In(10'000), In(1000));
  if (const Claim pages = client->Wait(reserve).claim) Copy(client.get(), pages);

  auto settle = client->StartSettle(kRequest, {.host = uint64_t{loaded} * kBlockTokens}, In(1000));
  client->Wait(settle);
  std::printf("computed %u blocks, loaded %u\n", blocks - loaded, loaded);
  return 0;
}
