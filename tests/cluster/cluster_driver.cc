#include "tests/cluster/cluster_driver.h"

#include <algorithm>
#include <cstring>

#include "transfer/memory/page_copy.h"

namespace pando::testing {
namespace {

constexpr uint32_t kDeliveriesMax = 1'000'000;  // in one settling: more is a loop that never ends

}  // namespace

ClusterDriver::ClusterDriver(uint32_t nodes, const Options& options)
    : options_(options), net_(options.transfers), members_(nodes) {
  for (uint32_t i = 0; i < nodes; ++i) {
    net_.Add({"node-" + std::to_string(i),
              [this, i](Input input) { node(i).Input(std::move(input)); },
              [this, i](PageId page, Bytes bytes) { return PageOf(i, page, bytes); }});
  }
  net_.SetTime(now_);
  for (uint32_t i = 0; i < nodes; ++i) Build(i);
  Settle();
  Advance(kTold);
}

ClusterDriver::~ClusterDriver() {
  EXPECT_EQ(wrong_, 0u) << "wrong bytes";
}

void ClusterDriver::Build(uint32_t i) {
  Member& member = members_[i];
  CoreDriver::Options driver;
  driver.extents = 0;
  driver.slab_bytes = Bytes(kExtentBytes.value() * options_.extents);
  driver.extent_pages = options_.extent_pages;
  member.driver = std::make_unique<CoreDriver>(driver);
  member.driver->now = now_;
  member.driver->elsewhere = [this, i](Output output) { net_.Carry(i, &output); };
  net_.Start(i, BootId(1000 * (i + 1) + ++member.lives));
  for (uint32_t e = 0; e < options_.extents; ++e) member.driver->Input(ExtentReady{ExtentId(e)});
  EngineOptions engine;
  engine.shards = options_.shards;
  engine.page_bytes = options_.page_bytes;
  engine.prefill_tokens_per_s = options_.prefill_tokens_per_s;
  member.engine = member.driver->StartEngine("engine", engine);
}

std::span<std::byte> ClusterDriver::PageOf(uint32_t i, PageId page, Bytes bytes) {
  std::vector<std::byte>& memory = members_[i].pages[page];
  if (memory.size() != bytes.value()) memory.resize(bytes.value());
  return memory;
}

PeerStatus ClusterDriver::peer(uint32_t i, uint32_t of) const {
  for (const PeerStatus& status : members_[i].driver->status().cluster.peers) {
    if (status.peer == PeerId(of + 1)) return status;
  }
  ADD_FAILURE() << "node " << i << " does not know node " << of;
  return {};
}

void ClusterDriver::Settle() {
  uint32_t delivered = 0;
  while (net_.Deliver()) {
    if (++delivered < kDeliveriesMax) continue;
    ADD_FAILURE() << "the network does not come to rest";
    return;
  }
}

void ClusterDriver::Advance(Nanos by) {
  const Nanos end = now_ + by;
  Settle();
  while (now_ < end) {
    Nanos next = std::min(end, net_.NextTime());
    for (uint32_t i = 0; i < size(); ++i) {
      if (net_.up(i)) next = std::min(next, node(i).core().next_deadline());
    }
    now_ = std::clamp(next, now_ + 1, end);
    net_.SetTime(now_);
    for (uint32_t i = 0; i < size(); ++i) {
      if (!net_.up(i)) continue;
      node(i).now = now_;
      if (node(i).core().next_deadline() <= now_) node(i).Input(Tick{});
    }
    Settle();
  }
}

void ClusterDriver::Crash(uint32_t i) {
  net_.Crash(i);
  members_[i].pages.clear();
}

void ClusterDriver::Restart(uint32_t i) {
  if (net_.up(i)) Crash(i);
  Build(i);
  Settle();
}

// ---- Engines

std::vector<std::byte> ClusterDriver::Expected(const PromptData& prompt, uint32_t block,
                                               uint32_t shard) const {
  // All that the block's KV depends on, mixed by a function of its own.
  uint64_t state = shard + 1;
  const auto mix = [&state](uint64_t value) {
    state = (state ^ value) * 6364136223846793005u + 1442695040888963407u;
  };
  const auto mix_text = [&mix](uint64_t tag, const std::string& text) {
    mix(tag);
    for (const char c : text) mix(static_cast<unsigned char>(c));
  };
  const uint64_t end = uint64_t{block + 1} * kBlock;
  for (uint64_t i = 0; i < end; ++i) mix(prompt.tokens[i]);
  uint64_t begin = 0;
  for (const auto& segment : prompt.segments) {
    if (begin < end && !segment.scope.empty()) mix_text(begin, segment.scope);
    begin = segment.end;
  }
  for (const auto& extra : prompt.extras) {
    if (extra.block <= block) mix_text(extra.block, extra.bytes);
  }
  std::vector<std::byte> bytes(options_.page_bytes.value());
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

uint32_t ClusterDriver::Compute(uint32_t i, const PromptData& prompt) {
  const ReserveAnswer reserved = node(i).Reserve(engine(i), prompt);
  if (reserved.claim == ClaimId()) return 0;
  Store(i, prompt, reserved.claim);
  return reserved.to - reserved.from;
}

void ClusterDriver::Store(uint32_t i, const PromptData& prompt, ClaimId claim) {
  const std::vector<SessionId>& workers = engine(i).workers;
  for (uint32_t shard = 0; shard < workers.size(); ++shard) {
    const BeginItem begun = node(i).Begin(workers[shard], claim);
    EndItem end;
    end.claim = claim;
    for (uint32_t p = 0; p < begun.pages.size(); ++p) {
      const std::vector<std::byte> bytes = Expected(prompt, begun.first_block + p, shard);
      std::memcpy(PageOf(i, begun.pages[p], options_.page_bytes).data(), bytes.data(),
                  bytes.size());
      end.checksums.push_back(PageChecksum(bytes));
    }
    EXPECT_EQ(node(i).End(workers[shard], end), Code::kOk);
  }
  Settle();
}

AcquireAnswer ClusterDriver::Acquire(uint32_t i, RequestId request, const PromptData& prompt,
                                     bool compute) {
  const AcquireAnswer answer = node(i).Acquire(engine(i), request, prompt, 0, compute);
  Settle();
  return answer;
}

uint32_t ClusterDriver::Get(uint32_t i, const PromptData& prompt, Nanos patience) {
  const RequestId request = NextRequest();
  const AcquireAnswer acquired = Acquire(i, request, prompt);
  ClaimId claim = acquired.claim;
  uint32_t blocks = acquired.blocks;
  if (acquired.ticket != 0) {
    const uint64_t serial = node(i).Await(engine(i), acquired.ticket, now_ + patience);
    Settle();
    if (!node(i).awaited.contains(serial)) Advance(patience);
    const auto it = node(i).awaited.find(serial);
    EXPECT_TRUE(it != node(i).awaited.end()) << "an await was not answered in time";
    if (it != node(i).awaited.end()) {
      const auto awaited = BodyOf<AwaitAnswer>(it->second);
      if (awaited.claim != ClaimId()) claim = awaited.claim;
      blocks = awaited.blocks;
    }
  }
  LoadAndSettle(i, request, prompt, claim, blocks);
  return blocks;
}

void ClusterDriver::LoadAndSettle(uint32_t i, RequestId request, const PromptData& prompt,
                                  ClaimId claim, uint32_t blocks) {
  const std::vector<SessionId>& workers = engine(i).workers;
  for (uint32_t shard = 0; claim != ClaimId() && shard < workers.size(); ++shard) {
    const BeginItem begun = node(i).Begin(workers[shard], claim);
    EXPECT_EQ(begun.code, Code::kOk) << begun.message;
    EXPECT_EQ(begun.pages.size(), blocks);
    EndItem end = LoadEnd(claim);
    for (uint32_t p = 0; p < begun.pages.size(); ++p) {
      const std::span<std::byte> page = PageOf(i, begun.pages[p], options_.page_bytes);
      const std::vector<std::byte> wanted = Expected(prompt, p, shard);
      const bool good = PageChecksum(page) == begun.checksums[p];
      if (!good) end.bad_pages.push_back(p);
      wrong_ += good && !std::equal(page.begin(), page.end(), wanted.begin()) ? 1 : 0;
    }
    EXPECT_EQ(node(i).End(workers[shard], end), Code::kOk);
  }
  SettleRequest settle;
  settle.request = request;
  settle.host = uint64_t{claim == ClaimId() ? 0 : blocks} * kBlock;
  node(i).Settle(engine(i), settle);
  Settle();
}

// ---- What holds

void ClusterDriver::ExpectSound() {
  for (uint32_t i = 0; i < size(); ++i) {
    if (net_.up(i)) node(i).ExpectSound();
  }
}

void ClusterDriver::ExpectBase() {
  for (uint32_t i = 0; i < size(); ++i) {
    if (!net_.up(i)) continue;
    SCOPED_TRACE("node " + std::to_string(i));
    node(i).ExpectBase();
    EXPECT_EQ(node(i).status().cluster.grants, 0u);
    EXPECT_EQ(node(i).status().cluster.fetches, 0u);
  }
}

void ClusterDriver::ExpectConverged() {
  for (uint32_t i = 0; i < size(); ++i) {
    for (uint32_t of = 0; of < size(); ++of) {
      if (i == of || !net_.up(i) || !net_.up(of)) continue;
      const PeerStatus view = peer(i, of);
      EXPECT_TRUE(view.view_complete) << i << " of " << of << ": " << view.why;
      EXPECT_EQ(view.blocks, node(of).status().cluster.totals.blocks) << i << " of " << of;
    }
  }
}

}  // namespace pando::testing
