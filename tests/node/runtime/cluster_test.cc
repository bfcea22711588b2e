// Cluster with a stand-in for the core: what it carries out and what it delivers.
#include "node/runtime/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node/local/clock.h"
#include "tests/node/control/inputs.h"
#include "transfer/memory/page_copy.h"

namespace pando::runtime {
namespace {

using control::Inputs;
using control::kWait;

constexpr Bytes kPage{100'000};  // less than its stride
constexpr Bytes kReserve{64ull << 20};
constexpr GrantId kGrant{1, 2};

// One node's part, and what its core would hear. Without a loop of its own.
struct Member {
  void Join(local::EventLoop* loop, const ClusterOptions& options) {
    Cluster::Owner owner;
    owner.loop = loop;
    owner.deliver = inputs.sink();
    owner.log = [](const LogLine&) {};
    auto made = Cluster::Create(options, std::move(owner));
    ASSERT_TRUE(made.ok()) << made.status();
    cluster = *std::move(made);
    auto made_extent = HostExtent::Create(kReserve);
    ASSERT_TRUE(made_extent.ok()) << made_extent.status();
    extent.emplace(*std::move(made_extent));
    auto mapped = MappedExtent::Map(extent->fd());
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    memory.emplace(*std::move(mapped));
    ASSERT_TRUE(cluster->AddExtent(*extent).ok());
  }
  // An engine's view of a page.
  std::span<std::byte> Page(uint32_t index) const {
    return memory->bytes().subspan(index * PageStride(kPage).value(), kPage.value());
  }
  // The next event of this kind.
  template <class E>
  std::optional<E> NextEvent() {
    for (;;) {
      const auto happened = inputs.Next<TransferHappened>();
      if (!happened) return std::nullopt;
      if (const auto* event = std::get_if<E>(&happened->event)) return *event;
    }
  }

  Inputs inputs;
  std::optional<HostExtent> extent;
  std::optional<MappedExtent> memory;
  std::unique_ptr<Cluster> cluster;
};

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() : owner_([this] { loop_.Run(); }) {}
  ~ClusterTest() override {
    OnOwner([this] {
      a_.cluster.reset();
      b_.cluster.reset();
      loop_.Stop();
    });
    owner_.join();
  }
  void OnOwner(const std::function<void()>& work) { EXPECT_TRUE(loop_.RunAndWait(work, kWait)); }
  void Join(Member* member, std::string data_listen = "127.0.0.1:0",
            std::vector<std::string> peers = {}) {
    ClusterOptions options;
    options.peer_listen = "127.0.0.1:0";
    options.data_listen = std::move(data_listen);
    options.peers = std::move(peers);
    OnOwner([&] { member->Join(&loop_, options); });
  }
  void Do(Member* member, Output output) {
    OnOwner([&] { member->cluster->CarryOut(std::move(output)); });
  }

  local::EventLoop loop_;
  Member a_, b_;
  std::thread owner_;
};

TEST_F(ClusterTest, PagesTravelFromExtentToExtent) {
  Join(&a_);
  Join(&b_);
  for (const uint32_t page : {3u, 7u}) {
    std::fill(a_.Page(page).begin(), a_.Page(page).end(), std::byte(page));
  }
  Do(&a_, OfferPages{kGrant, kPage, {MakePageId(ExtentId(0), 3), MakePageId(ExtentId(0), 7)}});
  StartPull pull;
  pull.pull = 5;
  pull.address = a_.cluster->data_address();
  pull.grant = kGrant;
  pull.deadline = local::Now() + 20'000'000'000;
  pull.page_bytes = kPage;
  pull.pages = {{0, PageChecksum(a_.Page(3)), MakePageId(ExtentId(0), 1)},
                {1, PageChecksum(a_.Page(7)), MakePageId(ExtentId(0), 0)}};
  Do(&b_, pull);
  const auto ended = b_.NextEvent<PullEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->pull, 5u);
  EXPECT_EQ(ended->status, PullStatus::kOk);
  EXPECT_EQ(ended->bytes, 2 * kPage.value());
  EXPECT_TRUE(std::ranges::equal(b_.Page(1), a_.Page(3)));
  EXPECT_TRUE(std::ranges::equal(b_.Page(0), a_.Page(7)));
  EXPECT_EQ(b_.Page(0).data()[kPage.value()], std::byte(0)) << "nothing beyond the page";
  Do(&a_, RevokeOffer{kGrant});
  const auto over = a_.NextEvent<GrantEnded>();
  ASSERT_TRUE(over.has_value());
  EXPECT_EQ(over->grant, kGrant);
  EXPECT_EQ(over->pages_sent, 2u);
}

TEST_F(ClusterTest, APullIsCancelled) {
  Join(&b_);
  StartPull pull;
  pull.pull = 6;
  pull.address = "127.0.0.1:1";
  pull.grant = kGrant;
  pull.deadline = local::Now() + 20'000'000'000;
  pull.page_bytes = kPage;
  pull.pages = {{0, 0, MakePageId(ExtentId(0), 0)}};
  Do(&b_, pull);
  Do(&b_, CancelPull{6});
  const auto ended = b_.NextEvent<PullEnded>();
  ASSERT_TRUE(ended.has_value());
  EXPECT_NE(ended->status, PullStatus::kOk);
}

TEST_F(ClusterTest, WithoutSharingNothingIsPulledAndAllIsAnswered) {
  Join(&a_, /*data_listen=*/"");
  EXPECT_EQ(a_.cluster->data_address(), "");
  StartPull pull;
  pull.pull = 7;
  pull.page_bytes = kPage;
  pull.pages = {{0, 0, MakePageId(ExtentId(0), 0)}, {1, 0, MakePageId(ExtentId(0), 1)}};
  Do(&a_, OfferPages{kGrant, kPage, {MakePageId(ExtentId(0), 0)}});
  Do(&a_, pull);
  const auto pages = a_.NextEvent<PullPages>();
  ASSERT_TRUE(pages.has_value());
  ASSERT_EQ(pages->pages.size(), 2u);
  EXPECT_EQ(pages->pages[1].position, 1u);
  EXPECT_EQ(pages->pages[1].outcome, PageOutcome::kFailed);
  EXPECT_TRUE(a_.NextEvent<PullEnded>().has_value());
  Do(&a_, RevokeOffer{kGrant});
  EXPECT_TRUE(a_.NextEvent<GrantEnded>().has_value());
}

TEST_F(ClusterTest, BeginsAndAsksThePeersThatItIsTold) {
  Join(&a_);
  Join(&b_, "127.0.0.1:0", {a_.cluster->peer_address(), "127.0.0.1:1"});
  OnOwner([&] { b_.cluster->Begin("b", BootId(9)); });
  const auto started = b_.inputs.Next<ClusterStarted>();
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->node_name, "b");
  EXPECT_EQ(started->boot, BootId(9));
  EXPECT_EQ(started->data_address, b_.cluster->data_address());
  const auto changed = b_.inputs.Next<PeersChanged>();
  ASSERT_TRUE(changed.has_value());
  ASSERT_EQ(changed->peers.size(), 2u);
  EXPECT_NE(changed->peers[0].id, changed->peers[1].id);
  const auto peer =
      std::ranges::find(changed->peers, a_.cluster->peer_address(), &PeersChanged::Peer::address);
  ASSERT_NE(peer, changed->peers.end());

  Do(&b_, AskPeer{peer->id, 1, local::Now() + 20'000'000'000, GoodbyeRequest{BootId(9), "test"}});
  const auto asked = a_.inputs.Next<PeerAsks>();
  ASSERT_TRUE(asked.has_value());
  Do(&a_, AnswerPeer{asked->call, GoodbyeAnswer{}});
  const auto answered = b_.inputs.Next<PeerAnswered>();
  ASSERT_TRUE(answered.has_value());
  EXPECT_TRUE(answered->answer.has_value()) << answered->why;

  // A feed goes on once the owner has stepped with what came.
  Do(&b_, OpenFeed{peer->id, 4, FeedRequest{BootId(9), BootId(0), 0}});
  const auto feed = a_.inputs.Next<FeedAsked>();
  ASSERT_TRUE(feed.has_value());
  for (uint64_t i = 1; i <= 3; ++i) {
    auto piece = std::make_shared<FeedPiece>();
    piece->boot = BootId(8);
    piece->sequence = i;
    Do(&a_, SendFeed{feed->stream, piece, std::nullopt});
    const auto arrived = b_.inputs.Next<FeedArrived>();
    ASSERT_TRUE(arrived.has_value() && arrived->piece.has_value());
    EXPECT_EQ(arrived->piece->sequence, i);
    ASSERT_TRUE(a_.inputs.Next<FeedReady>().has_value());
  }
  Do(&b_, CloseFeed{4});
  EXPECT_TRUE(a_.inputs.Next<FeedDropped>().has_value());
}

// FAULTS G5
TEST_F(ClusterTest, PortsThatCannotBeHad) {
  Join(&a_);
  const auto refused = [&](std::string peer, std::string data) {
    std::string why;
    OnOwner([&] {
      ClusterOptions options;
      options.peer_listen = std::move(peer);
      options.data_listen = std::move(data);
      Cluster::Owner owner;
      owner.loop = &loop_;
      const auto made = Cluster::Create(options, std::move(owner));
      why = std::string(made.status().message());
    });
    return why;
  };
  EXPECT_THAT(refused(a_.cluster->peer_address(), "127.0.0.1:0"),
              testing::HasSubstr(a_.cluster->peer_address()));
  EXPECT_THAT(refused("127.0.0.1:0", a_.cluster->data_address()),
              testing::AllOf(testing::HasSubstr("--data-listen"),
                             testing::HasSubstr(a_.cluster->data_address())));
}

}  // namespace
}  // namespace pando::runtime
