#include "tests/bench/bench_client.h"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

namespace pando::bench {

void Fail(const std::string& what) {
  std::fprintf(stderr, "benchmark: %s\n", what.c_str());
  std::exit(1);
}

std::unique_ptr<client::Client> Attach(const std::string& socket, const std::string& replica_key,
                                       uint64_t page_bytes, uint64_t prefill_tokens_per_s) {
  client::Options options;
  options.socket = socket;
  options.replica_key = replica_key;
  options.block_tokens = kBlockTokens;
  options.page_bytes = page_bytes;
  options.fields = {{"model", "bench"}};
  options.prefill_tokens_per_s = prefill_tokens_per_s;
  auto client = client::Client::Create(options);
  if (!client->WaitAttached(client::NowNanos() + kCallNanos)) {
    Fail("not attached: " + client->last_error());
  }
  return client;
}

void StorePrompt(client::Client* client, const std::vector<uint32_t>& tokens, uint64_t page_bytes) {
  const int64_t deadline = client::NowNanos() + kCallNanos;
  const auto blocks = static_cast<uint32_t>(tokens.size() / kBlockTokens);
  auto reserve = client->StartReserve(0, {tokens, {}, {}}, {}, 0, blocks, 0, deadline);
  const client::ReserveResult& reserved = client->Wait(reserve);
  if (!reserved.claim || reserved.to != blocks) Fail("not reserved: " + reserved.message);
  auto begin = client->StartBegin({&reserved.claim, 1}, deadline);
  client::BeginResult& begun = client->Wait(begin);
  if (begun.holds.size() != 1) Fail("not begun: " + begun.message);
  const std::vector<std::byte> page(page_bytes, std::byte{7});
  const std::vector<std::span<const std::byte>> pieces = {page};
  for (uint32_t i = 0; i < begun.holds[0].pages(); ++i) {
    if (!begun.holds[0].Store(i, pieces)) Fail("not stored");
  }
  auto end = client->StartEnd(std::move(begun.holds[0]), deadline);
  const client::EndResult& ended = client->Wait(end);
  if (ended.code != client::Code::kOk) Fail("not committed: " + ended.message);
}

}  // namespace pando::bench
