#include "node/runtime/peer_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace pando::runtime {
namespace {

using testing::ElementsAre;
using Strings = std::vector<std::string>;

// A name service of the test's own, and what was found.
class PeerNamesTest : public testing::Test {
 protected:
  void Start(Strings peers, std::string dns) {
    PeerNames::Options options;
    options.peers = std::move(peers);
    options.dns = std::move(dns);
    options.every = std::chrono::milliseconds(1);
    options.lookup = [this](const std::string&, std::string* why) { return LookUp(why); };
    names_ = std::make_unique<PeerNames>(
        options, [this](const Strings& addresses) { Push(&found_, addresses); },
        [this](const std::string& name, const std::string& why) {
          Push(&failed_, {name, why});
        });
  }
  std::optional<Strings> LookUp(std::string* why) {
    const std::lock_guard lock(mutex_);
    if (!answer_) *why = "no such name";
    ++looked_up_;
    changed_.notify_all();
    return answer_;
  }
  // What the next look-ups say; returns when there has been one that began after that.
  void Answer(std::optional<Strings> answer) {
    std::unique_lock lock(mutex_);
    answer_ = std::move(answer);
    const uint64_t enough = looked_up_ + 2;
    changed_.wait_for(lock, kWait, [&] { return names_ == nullptr || looked_up_ >= enough; });
  }
  void Push(std::deque<Strings>* to, Strings what) {
    const std::lock_guard lock(mutex_);
    to->push_back(std::move(what));
    changed_.notify_all();
  }
  Strings Next(std::deque<Strings>* from) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kWait, [&] { return !from->empty(); })) return {"nothing came"};
    Strings next = from->front();
    from->pop_front();
    return next;
  }

  static constexpr std::chrono::seconds kWait{20};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Strings> answer_;
  uint64_t looked_up_ = 0;
  std::deque<Strings> found_, failed_;
  std::unique_ptr<PeerNames> names_;
};

TEST_F(PeerNamesTest, NumbersAreThereAtOnceAndAskNobody) {
  Start({"10.0.0.2:1", "[::1]:2"}, "");
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_THAT(found_[0], ElementsAre("10.0.0.2:1", "[::1]:2"));
  EXPECT_EQ(looked_up_, 0u);
}

TEST_F(PeerNamesTest, AllAddressesOfADnsName) {
  answer_ = Strings{"10.0.0.2", "10.0.0.1"};
  Start({}, "nodes:7");
  EXPECT_THAT(Next(&found_), ElementsAre("10.0.0.1:7", "10.0.0.2:7"));
  Answer(Strings{"10.0.0.3", "::1"});
  EXPECT_THAT(Next(&found_), ElementsAre("10.0.0.3:7", "[::1]:7"));
}

TEST_F(PeerNamesTest, ANameThatIsListedIsOnePeer) {
  answer_ = Strings{"10.0.0.2", "10.0.0.1"};
  Start({"a:7"}, "");
  EXPECT_THAT(Next(&found_), ElementsAre("10.0.0.2:7"));
  Answer(Strings{"10.0.0.1", "10.0.0.2"});  // another order only
  Answer(Strings{"10.0.0.1", "10.0.0.4"});
  EXPECT_THAT(Next(&found_), ElementsAre("10.0.0.1:7"));
}

TEST_F(PeerNamesTest, WhatIsKnownStaysWhenTheNameServiceIsGone) {
  answer_ = Strings{"10.0.0.1"};
  Start({}, "nodes:7");
  EXPECT_THAT(Next(&found_), ElementsAre("10.0.0.1:7"));
  Answer(std::nullopt);
  EXPECT_THAT(Next(&failed_), ElementsAre("nodes:7", "no such name"));
  Answer(std::nullopt);
  Answer(Strings{"10.0.0.5"});
  EXPECT_THAT(Next(&found_), ElementsAre("10.0.0.5:7")) << "nothing in between";
  const std::lock_guard lock(mutex_);
  EXPECT_TRUE(failed_.empty()) << "said once";
}

}  // namespace
}  // namespace pando::runtime
