// FAULTS G2: whatever comes from the node is checked; anything broken ends the session, with the
// reason, and never the engine. The next session, with a node that is well, is as good as the
// first.
#include <fcntl.h>

#include <cstring>
#include <random>

#include "radix/base/ids.h"
#include "tests/client/fake_node.h"

namespace pando::client {
namespace {

class BrokenNodeTest : public ClientTest {
 protected:
  BrokenNodeTest() { tokens_.resize(100); }

  void ExpectOver(const std::string& reason) {
    client().Poll();
    EXPECT_NE(client().state(), State::kAttached);
    EXPECT_NE(client().last_error().find(reason), std::string::npos)
        << "found: " << client().last_error() << "\nexpected: " << reason;
    EXPECT_EQ(client().counters().sessions_lost, 1u);
    AttachAgain(12);
    EXPECT_FALSE(client().StartProbe({}, Soon()).ready());
  }

  // The node's answer to an acquire of 100 tokens is filled by `fill`.
  void AnswerAcquire(const std::function<void(pb::NodeMessage&)>& fill, const std::string& reason) {
    StartAttached();
    auto call = client().StartAcquire(1, {tokens_, {}, {}}, 0, 0, Soon());
    client().Flush();
    node().Answer(node().ReadOne().serial(), fill);
    ExpectOver(reason);
    EXPECT_TRUE(call.ready());
    EXPECT_EQ(call.get().code, Code::kLost);
    EXPECT_FALSE(call.get().claim);
  }

  // The node's answer to a begin of claims 61 and 62 is first made well, then changed by `spoil`.
  void AnswerBegin(const std::function<void(pb::NodeMessage&)>& spoil, const std::string& reason) {
    StartAttached();
    SendExtentOnce();
    const Claim claims[] = {Named(61), Named(62)};
    auto call = client().StartBegin(claims, Soon());
    client().Flush();
    node().Answer(node().ReadOne().serial(), [&](auto& message) {
      FillBegin(message, 61, true, 2);
      FillBegin(message, 62, false, 2);
      spoil(message);
    });
    ExpectOver(reason);
    EXPECT_TRUE(call.ready());
    EXPECT_EQ(call.get().code, Code::kLost);
    EXPECT_TRUE(call.get().holds.empty()) << "a hold came out of a false answer";
  }

  static void SetPage(pb::BeginItem* item, uint32_t i, uint32_t page) {
    std::memcpy(item->mutable_pages()->data() + 4 * i, &page, sizeof(page));
  }

  std::vector<uint32_t> tokens_;
};

TEST_F(BrokenNodeTest, GarbageInsteadOfAFrame) {
  StartAttached();
  node().SendBytes(std::string("\x05\0\0\0\xff\xff\xff\xff\xff", 9));
  ExpectOver("5 bytes that is no NodeFrame");
}

TEST_F(BrokenNodeTest, AFrameThatIsTooLong) {
  StartAttached();
  node().SendBytes("HTTP/1.1 400");
  ExpectOver("a frame of 1347703880 bytes, allowed are 8388608");
}

TEST_F(BrokenNodeTest, TheConnectionEndsInMidFrame) {
  StartAttached();
  node().SendBytes(std::string("\x40\0\0\0half", 8));
  client().Poll();
  EXPECT_EQ(client().state(), State::kAttached);
  node().Hangup();
  ExpectOver("closed the connection");
}

TEST_F(BrokenNodeTest, TheConnectionEndsWhileCallsWait) {
  StartAttached();
  auto call = client().StartProbe({}, Soon());
  client().Flush();
  node().Hangup();
  client().Poll();
  EXPECT_TRUE(call.ready());
  EXPECT_EQ(call.get().code, Code::kLost);
}

TEST_F(BrokenNodeTest, AnotherBootId) {  // FAULTS D2
  StartAttached();
  auto call = client().StartProbe({}, Soon());
  client().Flush();
  ++node().boot_id;
  node().Answer(node().ReadOne().serial(), [](auto& answer) { answer.mutable_probe(); });
  ExpectOver("boot id changed");
  EXPECT_EQ(call.get().code, Code::kLost);
  EXPECT_EQ(client().boot_id(), node().boot_id);
}

TEST_F(BrokenNodeTest, NoBootId) {
  StartAttached();
  node().SendFrame(pb::NodeFrame());
  ExpectOver("without its boot id");
}

TEST_F(BrokenNodeTest, AnAnswerToNothing) {
  StartAttached();
  node().Answer(999, [](auto& answer) { answer.mutable_probe(); });
  ExpectOver("message 999, which was never sent");
}

TEST_F(BrokenNodeTest, AnAnswerThatComesTwice) {
  StartAttached();
  auto call = client().StartProbe({}, Soon());
  client().Flush();
  const uint64_t serial = node().ReadOne().serial();
  for (int i = 0; i < 2; ++i) node().Answer(serial, [](auto& answer) { answer.mutable_probe(); });
  ExpectOver("answered already");
  EXPECT_EQ(call.get().code, Code::kOk) << "the first answer was good";
}

TEST_F(BrokenNodeTest, AnAnswerOfTheSessionBefore) {
  StartAttached();
  auto call = client().StartProbe({}, Soon());
  client().Flush();
  const uint64_t serial = node().ReadOne().serial();
  node().Hangup();
  client().Poll();
  AttachAgain(12);
  node().Answer(serial, [](auto& answer) { answer.mutable_probe(); });
  client().Poll();
  EXPECT_NE(client().last_error().find("never sent"), std::string::npos) << client().last_error();
}

TEST_F(BrokenNodeTest, TheBodyOfAnotherAnswer) {
  AnswerAcquire([](auto& answer) { answer.mutable_probe(); }, "body of another answer");
}

TEST_F(BrokenNodeTest, NoBodyAtAll) {
  AnswerAcquire([](auto&) {}, "body of another answer");
}

TEST_F(BrokenNodeTest, MoreBlocksThanThePromptHas) {
  AnswerAcquire(
      [](auto& answer) {
        answer.mutable_acquire()->set_claim(1);
        answer.mutable_acquire()->set_blocks(7);
      },
      "claim 1 on 7 blocks of a prompt of 100 tokens");
}

TEST_F(BrokenNodeTest, BlocksWithoutAClaim) {
  AnswerAcquire([](auto& answer) { answer.mutable_acquire()->set_blocks(2); },
                "claim 0 on 2 blocks");
}

TEST_F(BrokenNodeTest, AReservationBehindWhatWasAskedFor) {
  StartAttached();
  Open(1);
  auto call = client().StartReserve(1, {}, {}, 0, 4, 0, Soon());
  client().Flush();
  node().Answer(node().ReadOne().serial(), [](auto& answer) {
    answer.mutable_reserve()->set_claim(1);
    answer.mutable_reserve()->set_to(5);
  });
  ExpectOver("blocks 0 to 5, asked were those up to 4");
  EXPECT_FALSE(call.get().claim);
}

// ---- begin

TEST_F(BrokenNodeTest, AnExtentThatWasNeverSent) {
  AnswerBegin(
      [](auto& m) { SetPage(m.mutable_begin()->mutable_items(1), 1, 4u << kPageIndexBits); },
      "not in an extent that this session has");
}

TEST_F(BrokenNodeTest, APageThatReachesOutOfItsExtent) {
  const auto behind = static_cast<uint32_t>(kExtentBytes.value() / kPageStride);
  AnswerBegin(
      [&](auto& m) {
        SetPage(m.mutable_begin()->mutable_items(0), 0, 3u << kPageIndexBits | behind);
      },
      "not in an extent");
}

TEST_F(BrokenNodeTest, APageIndexFarOutOfItsExtent) {
  AnswerBegin(
      [](auto& m) {
        SetPage(m.mutable_begin()->mutable_items(0), 0, 3u << kPageIndexBits | 0x3fff);
      },
      "not in an extent");
}

TEST_F(BrokenNodeTest, PagesOfAnotherSize) {
  AnswerBegin([](auto& m) { m.mutable_begin()->mutable_items(0)->set_page_bytes(4096); },
              "pages of 4096 bytes");
}

TEST_F(BrokenNodeTest, PagesOfNoSize) {
  options_.page_bytes = 0;
  AnswerBegin([](auto& m) { m.mutable_begin()->mutable_items(0)->set_page_bytes(0); },
              "pages of 0 bytes");
}

TEST_F(BrokenNodeTest, PagesOfMoreThanTheLimit) {
  options_.page_bytes = 0;
  AnswerBegin([](auto& m) { m.mutable_begin()->mutable_items(0)->set_page_bytes(1ull << 63); },
              "pages of 9223372036854775808 bytes");
}

TEST_F(BrokenNodeTest, ColumnsOfDifferentLengths) {
  for (int column = 0; column < 5; ++column) {
    AnswerBegin(
        [&](auto& m) {
          pb::BeginItem* store = m.mutable_begin()->mutable_items(0);
          pb::BeginItem* load = m.mutable_begin()->mutable_items(1);
          if (column == 0) store->mutable_pages()->pop_back();
          if (column == 1) store->mutable_generations()->append(4, 'x');
          if (column == 2) store->mutable_checksums()->append(8, 'x');
          if (column == 3) load->mutable_checksums()->resize(8);
          if (column == 4) load->clear_pages();
        },
        "do not belong together");
  }
}

TEST_F(BrokenNodeTest, AClaimThatWasNotAskedFor) {
  AnswerBegin([](auto& m) { m.mutable_begin()->mutable_items(0)->set_claim(63); },
              "claim 63, which was not asked for");
}

TEST_F(BrokenNodeTest, AClaimThatIsAnsweredTwice) {
  AnswerBegin([](auto& m) { m.mutable_begin()->mutable_items(0)->set_claim(62); },
              "claim 62 twice");
}

TEST_F(BrokenNodeTest, AClaimThatIsNotAnswered) {
  AnswerBegin([](auto& m) { m.mutable_begin()->mutable_items()->RemoveLast(); },
              "1 items for 2 claims");
}

TEST_F(BrokenNodeTest, AClaimThatIsHeldAlready) {
  StartAttached();
  Hold hold = BeginHold(61, true, 1);
  const Claim claim = Named(61);
  auto again = client().StartBegin(std::span(&claim, 1), Soon());
  client().Flush();
  node().Answer(node().ReadOne().serial(), [&](auto& m) { FillBegin(m, 61, true, 1); });
  client().Poll();
  EXPECT_NE(client().last_error().find("claim 61 was accepted twice"), std::string::npos);
  EXPECT_FALSE(hold.live());
  hold = Hold();
  AttachAgain(12);
}

TEST_F(BrokenNodeTest, AnEndWithMoreCodesThanItems) {
  StartAttached();
  auto call = client().StartEnd(BeginHold(61, true, 1), Soon());
  client().Flush();
  node().Answer(node().ReadOne().serial(), [](auto& m) {
    m.mutable_end()->add_codes(pb::OK);
    m.mutable_end()->add_codes(pb::OK);
  });
  ExpectOver("2 codes for 1 items");
  EXPECT_EQ(call.get().code, Code::kLost);
}

// ---- extents

TEST_F(BrokenNodeTest, AnExtentWithoutItsFd) {
  StartAttached();
  pb::NodeFrame frame;
  frame.set_boot_id(node().boot_id);
  frame.add_extents(3);
  node().SendFrame(frame);
  ExpectOver("extent 3 without its file descriptor");
}

TEST_F(BrokenNodeTest, AnFdWithoutItsExtent) {
  StartAttached();
  const FakeExtent extent;
  pb::NodeFrame frame;
  frame.set_boot_id(node().boot_id);
  node().SendFrame(frame, {extent.fd.get()});
  ExpectOver("belong to no frame");
}

TEST_F(BrokenNodeTest, AnExtentThatComesTwice) {
  StartAttached();
  const FakeExtent extent;
  node().SendExtent(3, extent);
  node().SendExtent(3, extent);
  ExpectOver("extent 3 twice");
}

TEST_F(BrokenNodeTest, AnExtentThatNoPageCanName) {
  StartAttached();
  const FakeExtent extent;
  node().SendExtent(1u << 18, extent);
  ExpectOver("no page can name");
}

TEST_F(BrokenNodeTest, AnExtentThatCouldShrink) {  // FAULTS C9
  StartAttached();
  const UniqueFd file(open("/dev/zero", O_RDWR | O_CLOEXEC));
  pb::NodeFrame frame;
  frame.set_boot_id(node().boot_id);
  frame.add_extents(3);
  node().SendFrame(frame, {file.get()});
  ExpectOver("sealed against resizing");
}

TEST_F(BrokenNodeTest, ManyExtentsInOneFrame) {  // well, for once
  StartAttached();
  std::vector<FakeExtent> extents(40);
  pb::NodeFrame frame;
  frame.set_boot_id(node().boot_id);
  std::vector<int> fds;
  for (uint32_t i = 0; i < extents.size(); ++i) {
    frame.add_extents(100 + i);
    fds.push_back(extents[i].fd.get());
  }
  node().SendFrame(frame, fds);
  node().SendFrame(frame, fds);
  client().Poll();
  EXPECT_NE(client().last_error().find("extent 100 twice"), std::string::npos)
      << client().last_error();
}

// Whatever bits flip, the process lives and the next session is good.
TEST_F(BrokenNodeTest, FlippedBits) {
  std::mt19937 random(5);
  StartAttached();
  for (int round = 0; round < 1000; ++round) {
    if (client().state() != State::kAttached) AttachAgain(static_cast<uint64_t>(round) + 100);
    SendExtentOnce();
    const Claim claims[] = {Named(61), Named(62)};
    auto acquire = client().StartAcquire(1, {tokens_, {}, {}}, 0, 0, Soon());
    auto begin = client().StartBegin(claims, Soon());
    client().Flush();
    const pb::ClientFrame asked = node().Read();
    pb::NodeFrame frame;
    frame.set_boot_id(node().boot_id);
    for (const auto& message : asked.messages()) {
      pb::NodeMessage* answer = frame.add_messages();
      answer->set_serial(message.serial());
      if (message.has_acquire()) answer->mutable_acquire()->set_claim(5);
      if (message.has_acquire()) answer->mutable_acquire()->set_blocks(3);
      if (message.has_begin()) FillBegin(*answer, 61, true, 2);
      if (message.has_begin()) FillBegin(*answer, 62, false, 2);
    }
    std::string bytes = Framed(frame);
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
      bytes[4 + random() % (bytes.size() - 4)] ^= static_cast<char>(1u << (random() % 8));
    }
    node().SendBytes(bytes);
    client().Poll();
    for (Hold& hold : begin.get().holds) {
      std::vector<std::byte> room(hold.page_bytes());
      const std::span<std::byte> piece(room);
      if (hold.store()) hold.Store(0, std::vector<std::span<const std::byte>>{piece});
      if (!hold.store()) hold.Load(0, std::span(&piece, 1));
    }
    begin = Call<BeginResult>();
    node().Hangup();
    client().Poll();
  }
  EXPECT_GE(client().counters().attaches, 1000u);
}

}  // namespace
}  // namespace pando::client
