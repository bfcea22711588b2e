#include <cstring>
#include <functional>
#include <random>

#include "client/steps.h"
#include "radix/base/ids.h"
#include "tests/client/fake_node.h"
#include "transfer/memory/page_copy.h"

namespace pando::client {
namespace {

using ConstPiece = std::span<const std::byte>;
using Piece = std::span<std::byte>;

class HoldsTest : public ClientTest {
 protected:
  static std::vector<std::byte> Bytes(int seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::vector<std::byte> bytes(kPageBytes);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  Piece PageInNode(uint32_t i) {
    return extent_->mapped.bytes().subspan(i * kPageStride, kPageBytes);
  }
  static bool StorePage(Hold& hold, uint32_t i, ConstPiece bytes) {
    const ConstPiece pieces[] = {bytes.first(100), bytes.subspan(100)};
    return hold.Store(i, pieces);
  }
  static bool LoadPage(Hold& hold, uint32_t i, Piece bytes) {
    const Piece pieces[] = {bytes.first(5000), bytes.subspan(5000)};
    return hold.Load(i, pieces);
  }
  static void RefuseForRoom(pb::NodeMessage& answer, uint64_t claim) {
    pb::BeginItem* item = answer.mutable_begin()->add_items();
    item->set_claim(claim);
    item->set_code(pb::LIMIT);
    item->set_message("no room");
  }
  pb::EndItem ReadEnd() {
    client().Flush();
    const pb::ClientMessage message = node().ReadOne();
    EXPECT_EQ(message.end().items_size(), 1);
    return message.end().items_size() == 0 ? pb::EndItem() : message.end().items(0);
  }
};

TEST_F(HoldsTest, AStoredPageIsInTheNodeAndItsChecksumInTheEnd) {  // FAULTS B1
  StartAttached();
  Hold hold = BeginHold(71, true, 2);
  EXPECT_TRUE(hold.store());
  EXPECT_EQ(hold.claim(), Named(71));
  EXPECT_EQ(hold.pages(), 2u);
  EXPECT_EQ(hold.page_bytes(), kPageBytes);
  const auto first = Bytes(1);
  const auto second = Bytes(2);
  EXPECT_TRUE(StorePage(hold, 0, first));
  EXPECT_TRUE(StorePage(hold, 1, second));
  EXPECT_EQ(std::memcmp(PageInNode(1).data(), second.data(), kPageBytes), 0);
  auto call = client().StartEnd(std::move(hold), Soon());
  client().Flush();
  const pb::ClientMessage message = node().ReadOne();
  const pb::EndItem& item = message.end().items(0);
  EXPECT_FALSE(item.failed());
  EXPECT_EQ(item.bad_pages_size(), 0);
  const uint64_t expected[] = {PageChecksum(first), PageChecksum(second)};
  EXPECT_EQ(item.checksums(), std::string(reinterpret_cast<const char*>(expected), 16));
  node().Answer(message.serial(),
                [](auto& answer) { answer.mutable_end()->add_codes(pb::UNKNOWN); });
  client().Poll();
  EXPECT_EQ(call.get().code, Code::kUnknown) << "too late, nothing was committed";
}

// FAULTS B6: each page of an operation is told good or not.
TEST_F(HoldsTest, PagesThatWereNotStoredAreNamed) {
  StartAttached();
  Hold hold = BeginHold(71, true, 3);
  EXPECT_TRUE(StorePage(hold, 1, Bytes(1)));
  EXPECT_FALSE(StorePage(hold, 2, ConstPiece(Bytes(1)).first(500))) << "the pieces do not fill it";
  EXPECT_FALSE(StorePage(hold, 3, Bytes(1))) << "there are three";
  client().StartEnd(std::move(hold), Soon());
  const pb::EndItem item = ReadEnd();
  EXPECT_FALSE(item.failed());
  EXPECT_EQ(item.checksums().size(), 24u);
  ASSERT_EQ(item.bad_pages_size(), 2);
  EXPECT_EQ(item.bad_pages(0), 0u);
  EXPECT_EQ(item.bad_pages(1), 2u);
}

TEST_F(HoldsTest, AStoreThatNeverHappenedHasFailed) {  // FAULTS B6
  StartAttached();
  client().StartEnd(BeginHold(71, true, 3), Soon());
  EXPECT_TRUE(ReadEnd().failed());
}

TEST_F(HoldsTest, ALoadIsGoodOnlyWithTheRightChecksum) {  // FAULTS B6
  StartAttached();
  SendExtentOnce();
  const auto bytes = Bytes(3);
  for (uint32_t i = 0; i < 3; ++i) std::memcpy(PageInNode(i).data(), bytes.data(), kPageBytes);
  PageInNode(1)[7777] ^= std::byte{1};
  Hold hold = BeginHold(72, false, 3, std::vector<uint64_t>(3, PageChecksum(bytes)));
  std::vector<std::byte> back(kPageBytes);
  EXPECT_TRUE(LoadPage(hold, 0, back));
  EXPECT_EQ(back, bytes);
  EXPECT_FALSE(LoadPage(hold, 1, back));
  hold.Stop();
  EXPECT_FALSE(hold.live());
  EXPECT_FALSE(LoadPage(hold, 2, back)) << "stopped, which says nothing about the page";
  EXPECT_FALSE(StorePage(hold, 0, bytes)) << "a load's pages are not the engine's to write";
  client().StartEnd(std::move(hold), Soon());
  const pb::EndItem item = ReadEnd();
  EXPECT_FALSE(item.failed());
  EXPECT_EQ(item.checksums(), "");
  ASSERT_EQ(item.bad_pages_size(), 1);
  EXPECT_EQ(item.bad_pages(0), 1u);
}

TEST_F(HoldsTest, EndRidesWithWhatIsQueuedNext) {
  StartAttached();
  client().StartEnd(BeginHold(71, true, 1), Soon());
  EXPECT_FALSE(node().HasInput());
  auto next = client().StartProbe({}, Soon());
  client().Flush();
  const pb::ClientFrame frame = node().Read();
  ASSERT_EQ(frame.messages_size(), 2);
  EXPECT_TRUE(frame.messages(0).has_end());
  EXPECT_TRUE(frame.messages(1).has_probe());
}

TEST_F(HoldsTest, ADroppedHoldIsGivenBack) {  // FAULTS C1
  StartAttached();
  {
    Hold store = BeginHold(71, true, 1);
    EXPECT_TRUE(StorePage(store, 0, Bytes(1)));
  }
  client().Poll();
  pb::EndItem item = ReadEnd();
  EXPECT_EQ(item.claim(), 71u);
  EXPECT_TRUE(item.failed()) << "only End commits";
  BeginHold(72, false, 1);
  item = ReadEnd();
  EXPECT_EQ(item.claim(), 72u);
  EXPECT_FALSE(item.failed());
  EXPECT_EQ(client().counters().given_back, 2u);
}

TEST_F(HoldsTest, OnlyAcceptedClaimsBecomeHolds) {
  StartAttached();
  SendExtentOnce();
  const Claim claims[] = {Named(81), Named(82)};
  auto call = client().StartBegin(claims, Soon());
  client().Flush();
  node().Answer(node().ReadOne().serial(), [&](auto& message) {
    FillBegin(message, 82, true, 1);  // in another order than asked
    message.mutable_begin()->add_items()->set_claim(81);
    message.mutable_begin()->mutable_items(1)->set_code(pb::UNKNOWN);
  });
  client().Poll();
  ASSERT_EQ(call.get().codes, (std::vector<Code>{Code::kUnknown, Code::kOk}));
  EXPECT_EQ(call.get().holds[1].claim(), Named(82));
  EXPECT_FALSE(call.get().holds[0].live());
  std::vector<std::byte> room(kPageBytes);
  EXPECT_FALSE(LoadPage(call.get().holds[0], 0, room));
}

// An answer has room for so many pages: the claims that the node refuses for want of it are asked
// for again, and the caller sees one call, in its own order.
TEST_F(HoldsTest, ClaimsWithoutRoomInTheAnswerAreBegunByAnotherMessage) {
  StartAttached();
  SendExtentOnce();
  const std::vector<Claim> claims = {Named(81), Named(82), Named(83), Named(84)};
  const std::vector<uint64_t> begun = {82, 83, 81, 84};  // one a message
  const std::vector<std::vector<uint64_t>> asked = {{81, 82, 83, 84}, {81, 83, 84}, {81, 84}, {84}};
  auto call = client().StartBegin(claims, Soon());
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_FALSE(call.ready());
    client().Flush();
    const pb::ClientMessage message = node().ReadOne();
    const auto& got = message.begin().claims();
    ASSERT_EQ(std::vector<uint64_t>(got.begin(), got.end()), asked[i]);
    node().Answer(message.serial(), [&](auto& answer) {
      for (const uint64_t claim : asked[i]) {
        if (claim == begun[i]) {
          FillBegin(answer, claim, true, static_cast<uint32_t>(claim - 80));
        } else {
          RefuseForRoom(answer, claim);
        }
      }
    });
    client().Poll();
  }
  ASSERT_EQ(call.get().code, Code::kOk);
  EXPECT_EQ(call.get().codes, std::vector<Code>(4, Code::kOk));
  EXPECT_EQ(call.get().message, "");
  for (size_t i = 0; i < claims.size(); ++i) {
    EXPECT_EQ(call.get().holds[i].claim(), claims[i]);
    EXPECT_EQ(call.get().holds[i].pages(), claims[i].id - 80);
  }
}

// One that has no room though it is alone would be asked for without end.
TEST_F(HoldsTest, AClaimThatHasNoRoomByItselfIsRefused) {
  StartAttached();
  const Claim claim = Named(81);
  auto call = client().StartBegin(std::span(&claim, 1), Soon());
  client().Flush();
  node().Answer(node().ReadOne().serial(), [](auto& answer) { RefuseForRoom(answer, 81); });
  client().Poll();
  EXPECT_EQ(call.get().codes, std::vector<Code>{Code::kLimit});
  EXPECT_EQ(call.get().message, "no room");
  EXPECT_FALSE(node().HasInput());
}

// FAULTS C1, C10: what the first message of a call brought is given back when the second fails.
TEST_F(HoldsTest, ABeginThatFailsOnItsWayGivesBackWhatItHad) {
  StartAttached();
  SendExtentOnce();
  const Claim claims[] = {Named(81), Named(82)};
  auto call = client().StartBegin(claims, Soon());
  client().Flush();
  node().Answer(node().ReadOne().serial(), [&](auto& answer) {
    FillBegin(answer, 81, true, 1);
    RefuseForRoom(answer, 82);
  });
  client().Poll();
  const pb::ClientMessage second = node().ReadOne();
  node().Answer(second.serial(), [](auto& answer) { answer.set_code(pb::EXPIRED); });
  client().Poll();
  EXPECT_EQ(call.get().code, Code::kExpired);
  EXPECT_TRUE(call.get().holds.empty());
  client().Poll();
  const pb::EndItem item = ReadEnd();
  EXPECT_EQ(item.claim(), 81u);
  EXPECT_TRUE(item.failed());
}

// FAULTS D2, G3: in another life of the node the same number is another's claim.
TEST_F(HoldsTest, AClaimOfAnotherLifeOfTheNodeIsNeverSent) {
  StartAttached();
  SendExtentOnce();
  Open(1);
  const Claim old[] = {Named(81), Named(82)};
  node().Hangup();
  ++node().boot_id;
  client().Poll();
  AttachAgain(12);
  EXPECT_EQ(client().StartBegin(old, Soon()).get().code, Code::kUnknown);
  client().Abort(old);
  EXPECT_EQ(client().StartReserve(1, {}, {}, 0, 1, 0, Soon()).get().code, Code::kUnknown);
  EXPECT_EQ(client().StartSettle(1, {}, Soon()).get().code, Code::kUnknown);
  client().Flush();
  EXPECT_FALSE(node().HasInput());

  // Beside it, one of this life is begun.
  SendExtentOnce();
  const Claim both[] = {old[0], Named(81), Named(83)};
  auto call = client().StartBegin(both, Soon());
  client().Flush();
  const pb::ClientMessage message = node().ReadOne();
  EXPECT_EQ(message.begin().claims_size(), 2);
  node().Answer(message.serial(), [&](auto& answer) {
    FillBegin(answer, 81, true, 1);
    FillBegin(answer, 83, true, 2);
  });
  client().Poll();
  ASSERT_EQ(call.get().codes, (std::vector<Code>{Code::kUnknown, Code::kOk, Code::kOk}));
  EXPECT_EQ(call.get().holds[0].pages(), 0u);
  EXPECT_EQ(call.get().holds[1].claim(), Named(81));
  EXPECT_EQ(call.get().holds[2].pages(), 2u);
}

TEST_F(HoldsTest, AbortStopsTheHoldOfTheClaim) {
  StartAttached();
  Hold hold = BeginHold(71, true, 1);
  const Claim claims[] = {Named(71), Named(99), Claim{}};
  client().Abort(claims);
  EXPECT_FALSE(hold.live());
  EXPECT_FALSE(StorePage(hold, 0, Bytes(1)));
  client().StartEnd(std::move(hold), Soon());
  client().Flush();
  const pb::ClientFrame frame = node().Read();
  ASSERT_EQ(frame.messages_size(), 2);
  EXPECT_EQ(frame.messages(0).abort().claims_size(), 2);
  EXPECT_TRUE(frame.messages(1).end().items(0).failed());
}

// FAULTS C9, C4: the memory of a lost node stays until the last hold is gone; only then is there a
// new session, which says whose place it takes.
TEST_F(HoldsTest, ALostNodesMemoryStaysWhileItIsHeldAndIsGoneBeforeTheNextAttach) {
  StartAttached(11);
  Hold hold = BeginHold(71, true, 1);
  const auto bytes = Bytes(4);
  EXPECT_TRUE(StorePage(hold, 0, bytes));
  node().Hangup();
  client().Poll();
  EXPECT_EQ(client().state(), State::kDraining);
  EXPECT_FALSE(hold.live());
  EXPECT_FALSE(StorePage(hold, 0, bytes));
  auto end = client().StartEnd(Hold(), Soon());
  client().Poll();
  EXPECT_FALSE(client().WaitAttached(NowNanos() + 3'000'000));
  EXPECT_FALSE(node().Accept()) << "it attached while it still held memory";
  hold = Hold();
  client().Poll();
  ASSERT_TRUE(node().Accept());
  const pb::ClientMessage attach = node().ReadOne();
  EXPECT_EQ(attach.attach().replaces(), 11u);
  node().AnswerAttach(attach.serial(), 12);
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached);
  EXPECT_EQ(client().counters().sessions_lost, 1u);
}

TEST_F(HoldsTest, EndingAHoldOfALostSessionIsLost) {
  StartAttached();
  Hold hold = BeginHold(71, true, 1);
  node().Hangup();
  client().Poll();
  auto end = client().StartEnd(std::move(hold), Soon());
  ASSERT_TRUE(end.ready());
  EXPECT_EQ(end.get().code, Code::kLost);
  AttachAgain(12);
  client().Poll();
  EXPECT_FALSE(node().HasInput()) << "the new session ended a hold of the old one";
}

TEST_F(HoldsTest, AHoldOutlivesItsClient) {
  StartAttached();
  Hold hold = BeginHold(71, true, 1);
  client_.reset();
  EXPECT_FALSE(hold.live());
  EXPECT_FALSE(StorePage(hold, 0, Bytes(1)));
}

class AtStep : public StepListener {
 public:
  AtStep(Step step, std::function<void()> action) : step_(step), action_(std::move(action)) {}
  void Reached(std::string_view step) override {
    seen_.emplace_back(step);
    if (step == StepNames()[static_cast<size_t>(step_)] && action_) {
      std::exchange(action_, nullptr)();
    }
  }
  const std::vector<std::string>& seen() const { return seen_; }

 private:
  const Step step_;
  std::function<void()> action_;
  std::vector<std::string> seen_;
};

TEST_F(HoldsTest, TheRestOfTheNodesMemoryIsTouchedStepByStep) {
  StartAttached();
  EXPECT_FALSE(client().Prefault(1 << 20)) << "the node has shared nothing";
  Hold hold = BeginHold(71, true, 1);
  const size_t quarter = extent_->mapped.bytes().size() / 4;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client().Prefault(quarter));
  EXPECT_FALSE(client().Prefault(quarter));
  EXPECT_FALSE(client().Prefault(quarter));
  EXPECT_TRUE(StorePage(hold, 0, Bytes(1)));
  EXPECT_EQ(std::memcmp(PageInNode(0).data(), Bytes(1).data(), kPageBytes), 0);
}

// FAULTS B2: a hold is not ended under a running copy; it goes back once the copy has left.
TEST_F(HoldsTest, AHoldIsNotEndedWhileACopyRuns) {
  Hold hold;
  Call<EndResult> end;
  AtStep in_mid_copy(Step::kLoadChecking,
                     [&] { end = client().StartEnd(std::move(hold), Soon()); });
  options_.steps = &in_mid_copy;
  StartAttached();
  hold = BeginHold(71, false, 1);
  std::vector<std::byte> back(kPageBytes);
  Hold& same = hold;
  LoadPage(same, 0, back);
  ASSERT_TRUE(end.ready());
  EXPECT_EQ(end.get().code, Code::kInvalid);
  client().Poll();
  EXPECT_EQ(ReadEnd().claim(), 71u);
}

TEST_F(HoldsTest, StepsAreSaidInOrder) {
  AtStep listener(Step::kLost, nullptr);
  options_.steps = &listener;
  StartAttached();
  Hold hold = BeginHold(71, true, 1);
  StorePage(hold, 0, Bytes(1));
  client().StartEnd(std::move(hold), Soon());
  client().Flush();
  EXPECT_EQ(listener.seen(),
            (std::vector<std::string>{"client.frame_sent", "client.attach_sent", "client.attached",
                                      "client.begin_queued", "client.frame_sent",
                                      "client.extents_mapped", "client.begun", "client.page_stored",
                                      "client.end_queued", "client.frame_sent"}));
  for (const std::string_view name : StepNames()) EXPECT_TRUE(name.starts_with("client."));
}

}  // namespace
}  // namespace pando::client
