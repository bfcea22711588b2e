// Ten nodes tell each other what they hold, over links that lose, repeat, swap and spoil what they
// carry, to subscribers that are slow. Then it is quiet: every directory equals the truth.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "node/core/cluster/advertiser.h"
#include "node/core/cluster/feed_reader.h"
#include "tests/sim/random.h"

namespace pando {
namespace {

using sim::Random;

constexpr uint32_t kNodes = 10;
constexpr Nanos kTurn = 100'000'000;

struct Node {
  std::unique_ptr<Advertiser> advertiser;
  Directory held{1}, prefilling{2};
  std::vector<std::unique_ptr<FeedReader>> readers;  // of each node, its own unused
  std::vector<std::vector<uint64_t>> prefills;       // begun and not ended
  uint64_t boot = 0;
};

// What one node tells another.
struct Link {
  uint32_t from = 0, to = 0;
  SubscriberId subscriber;
  bool slow = false;
  std::deque<std::shared_ptr<const FeedPiece>> pieces;
};

class Cluster {
 public:
  explicit Cluster(uint64_t seed) : random_(seed), nodes_(kNodes) {
    for (uint32_t n = 0; n < kNodes; ++n) {
      Boot(n);
      for (uint32_t peer = 0; peer < kNodes; ++peer) {
        nodes_[n].readers.push_back(std::make_unique<FeedReader>(
            FeedReader::Options{.peer = PeerId(peer)}, &nodes_[n].held, &nodes_[n].prefilling));
      }
    }
    for (uint32_t from = 0; from < kNodes; ++from) {
      for (uint32_t to = 0; to < kNodes; ++to) {
        if (from == to) continue;
        links_.push_back({from, to, nodes_[from].advertiser->Subscribe(), random_.OneIn(5), {}});
      }
    }
    for (uint32_t c = 0; c < 60; ++c) {
      std::vector<uint64_t> keys;
      if (c > 0 && !random_.OneIn(3)) {
        const std::vector<uint64_t>& above = chains_[random_.Below(c)];
        keys.assign(above.begin(), above.begin() + random_.Below(above.size()) + 1);
      }
      for (uint64_t left = random_.Between(1, 60); left > 0; --left) keys.push_back(random_.Next());
      chains_.push_back(std::move(keys));
    }
  }

  void Turn(bool faults) {
    now_ += kTurn;
    for (Node& node : nodes_) {
      node.advertiser->Flush(now_);
      node.held.Sweep(2000);
      node.prefilling.Sweep(2000);
    }
    for (Link& link : links_) {
      Fill(&link, faults);
      Deliver(&link, faults);
    }
  }

  void Load() {
    const auto n = static_cast<uint32_t>(random_.Below(kNodes));
    Node& node = nodes_[n];
    const std::vector<uint64_t>& chain = chains_[random_.Below(chains_.size())];
    const size_t depth = random_.Below(chain.size() + 1);
    const Tier tier = random_.OneIn(3) ? Tier::kDisk : Tier::kHost;
    switch (random_.Below(9)) {
      case 0:
      case 1:
      case 2:
        node.advertiser->Appeared({}, std::span(chain).first(depth), tier, now_);
        break;
      case 3:
      case 4:
        node.advertiser->Vanished(std::span(chain).subspan(depth).first(depth < chain.size()),
                                  tier);
        break;
      case 5:
        node.advertiser->Used(std::span(chain).first(depth), now_);
        break;
      case 6:
        node.prefills.emplace_back(chain.begin() + static_cast<ptrdiff_t>(depth), chain.end());
        node.advertiser->PrefillBegan(node.prefills.back());
        break;
      case 7:
        if (node.prefills.empty()) break;
        node.advertiser->PrefillEnded(node.prefills.front());
        node.prefills.erase(node.prefills.begin());
        break;
      default:
        if (random_.OneIn(200)) Restart(n);
        break;
    }
  }

  void CheckInvariants() {
    for (Node& node : nodes_) {
      ASSERT_EQ(node.held.CheckInvariants(), "");
      ASSERT_EQ(node.prefilling.CheckInvariants(), "");
      ASSERT_EQ(node.advertiser->CheckInvariants(), "");
    }
  }

  // Every view is complete and has exactly the blocks that its peer tells.
  void ExpectTruth() {
    for (uint32_t n = 0; n < kNodes; ++n) {
      uint64_t all = 0;
      while (nodes_[n].held.Sweep(1'000'000)) {
      }
      for (uint32_t peer = 0; peer < kNodes; ++peer) {
        if (peer == n) continue;
        const Advertiser& truth = *nodes_[peer].advertiser;
        ASSERT_TRUE(nodes_[n].readers[peer]->complete()) << peer << " as " << n << " sees it";
        ASSERT_EQ(nodes_[n].held.blocks(PeerId(peer)), truth.told().keys);
        all += truth.told().keys;
        for (const std::vector<uint64_t>& chain : chains_) {
          for (const uint64_t key : chain) {
            ASSERT_EQ(nodes_[n].held.Holds(PeerId(peer), key), truth.Tells(key));
          }
        }
        std::multiset<uint64_t> prefilling;
        for (const auto& keys : nodes_[peer].prefills) prefilling.insert(keys.begin(), keys.end());
        for (const uint64_t key : prefilling) {
          ASSERT_TRUE(nodes_[n].prefilling.Holds(PeerId(peer), key));
        }
        ASSERT_EQ(nodes_[n].prefilling.blocks(PeerId(peer)),
                  std::set<uint64_t>(prefilling.begin(), prefilling.end()).size());
      }
      ASSERT_EQ(nodes_[n].held.holder_blocks(), all);
    }
  }

  uint64_t Count(FeedVerdict verdict) const {
    uint64_t count = 0;
    for (const Node& node : nodes_) {
      for (const auto& reader : node.readers) count += reader->count(verdict);
    }
    return count;
  }
  uint64_t fell_behind() const { return fell_behind_; }
  void StopBeingSlow() {
    for (const Node& node : nodes_) fell_behind_ += node.advertiser->counters().fell_behind;
    for (Link& link : links_) link.slow = false;
  }

 private:
  void Boot(uint32_t n) {
    nodes_[n].boot = random_.Next() | 1;
    nodes_[n].prefills.clear();
    nodes_[n].advertiser = std::make_unique<Advertiser>(
        Advertiser::Options{.boot = BootId(nodes_[n].boot),
                            .budget = Bytes(8 * random_.Between(100, 2000)),
                            .backlog = Bytes(random_.Between(1 << 10, 32 << 10)),
                            .keys_per_piece = static_cast<uint32_t>(random_.Between(5, 200)),
                            .digest_every = 3 * kTurn});
  }

  // The process dies and another comes: streams break, views of it stand until they hear.
  void Restart(uint32_t n) {
    Boot(n);
    for (Link& link : links_) {
      if (link.from == n) Resubscribe(&link);
    }
  }

  void Resubscribe(Link* link) {
    FeedReader& reader = *nodes_[link->to].readers[link->from];
    Advertiser& advertiser = *nodes_[link->from].advertiser;
    advertiser.Unsubscribe(link->subscriber);
    link->pieces.clear();
    reader.Interrupted();
    link->subscriber = reader.complete() ? advertiser.Subscribe(reader.boot(), reader.sequence())
                                         : advertiser.Subscribe();
  }

  void Fill(Link* link, bool faults) {
    if (faults && link->slow && !random_.OneIn(40)) return;
    for (int taken = 0; taken < 20; ++taken) {
      auto piece = nodes_[link->from].advertiser->Take(link->subscriber);
      if (piece == nullptr) return;
      const uint64_t fault = faults ? random_.Below(200) : 199;
      if (fault == 0) continue;                       // lost
      if (fault == 1) link->pieces.push_back(piece);  // repeated
      if (fault == 2) piece = Spoiled(*piece);
      link->pieces.push_back(std::move(piece));
      if (fault == 3 && link->pieces.size() > 1) {  // out of order
        std::swap(link->pieces.back(), link->pieces[link->pieces.size() - 2]);
      }
    }
  }

  std::shared_ptr<const FeedPiece> Spoiled(const FeedPiece& piece) {
    auto spoiled = std::make_shared<FeedPiece>(piece);
    const uint64_t bit = 1ull << random_.Below(64);
    switch (random_.Below(8)) {
      case 0:
        spoiled->boot = BootId(piece.boot.value() ^ bit);
        break;
      case 1:
        spoiled->sequence ^= bit;
        break;
      case 2:
        spoiled->part ^= static_cast<uint32_t>(bit);
        break;
      case 3:
        spoiled->last = !piece.last;
        break;
      case 4:
        spoiled->held.digest ^= bit;
        break;
      case 5:
        spoiled->prefilling.keys ^= bit;
        break;
      case 6:
        if (!piece.adds.empty()) spoiled->adds[random_.Below(piece.adds.size())] ^= bit;
        break;
      default:
        if (!piece.removes.empty()) spoiled->removes.pop_back();
        break;
    }
    return spoiled;
  }

  void Deliver(Link* link, bool faults) {
    FeedReader& reader = *nodes_[link->to].readers[link->from];
    while (!link->pieces.empty()) {
      if (faults && random_.OneIn(10)) return;
      reader.Apply(*link->pieces.front());
      link->pieces.pop_front();
      if (reader.wants_snapshot()) return Resubscribe(link);
    }
  }

  Random random_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<uint64_t>> chains_;
  Nanos now_ = 0;
  uint64_t fell_behind_ = 0;
};

// FAULTS E1, E2, E4, E5, G2
TEST(ConvergenceTest, AfterAnyLoadAndFaultsEveryDirectoryEqualsTheTruth) {
  uint64_t gaps = 0, digests = 0, boots = 0, repeated = 0, malformed = 0, behind = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(seed);
    for (int turn = 0; turn < 400; ++turn) {
      for (int call = 0; call < 30; ++call) cluster.Load();
      cluster.Turn(true);
      if (turn % 100 == 99) cluster.CheckInvariants();
    }
    cluster.StopBeingSlow();
    for (int turn = 0; turn < 3500; ++turn) cluster.Turn(false);
    cluster.ExpectTruth();
    cluster.CheckInvariants();
    if (testing::Test::HasFailure()) return;
    gaps += cluster.Count(FeedVerdict::kGap);
    digests += cluster.Count(FeedVerdict::kWrongDigest);
    boots += cluster.Count(FeedVerdict::kOtherBoot);
    repeated += cluster.Count(FeedVerdict::kRepeated);
    malformed += cluster.Count(FeedVerdict::kMalformed);
    behind += cluster.fell_behind();
  }
  // Every kind of trouble has been there.
  EXPECT_GT(gaps, 100u);
  EXPECT_GT(digests, 100u);
  EXPECT_GT(boots, 10u);
  EXPECT_GT(repeated, 100u);
  EXPECT_GT(malformed, 10u);
  EXPECT_GT(behind, 100u);
}

}  // namespace
}  // namespace pando
