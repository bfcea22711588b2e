// A ProcessEngine whose process ends, stops, or cannot be had: the engine stays, what is open ends
// or goes on, and the next process serves. FAULTS C3, E6, G3.
#include "transfer/process/process_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tests/paths.h"
#include "tests/transfer/engine_pair.h"
#include "tests/transfer/raw_bytes.h"
#include "transfer/memory/host_slab.h"
#include "transfer/memory/page_copy.h"
#include "transfer/memory/unique_fd.h"

namespace pando {
namespace {

using testing::HasSubstr;

constexpr Nanos kSecond = 1'000'000'000;
constexpr GrantId kGrant{17, 4};
constexpr const char* kProgram = PANDO_BIN_DIR "/pando-transfer";
constexpr size_t kPages = 64, kPageBytes = 400'000;

class ProcessEngineTest : public testing::Test {
 protected:
  using Page = std::pmr::vector<std::byte>;

  void SetUp() override {
    pair_ = MakeProcessPair({.pages_in_flight = 8, .stall_timeout = kSecond / 2});
    for (size_t i = 0; i < kPages; ++i) {
      from_.emplace_back(kPageBytes, static_cast<std::byte>(i), pair_->memory());
      to_.emplace_back(kPageBytes, std::byte{0xee}, pair_->memory());
    }
  }
  void TearDown() override {
    pair_->requester.reset();
    pair_->owner.reset();
    from_.clear();
    to_.clear();
    pair_.reset();
  }

  static ProcessEngine& Of(const std::unique_ptr<TransferEngine>& engine) {
    return dynamic_cast<ProcessEngine&>(*engine);
  }
  void OfferAll(GrantId grant = kGrant) {
    Offer offer{grant, {}};
    for (const Page& page : from_) offer.pages.push_back({page});
    ASSERT_TRUE(pair_->owner->Start(std::move(offer)));
  }
  void StartPull(uint64_t id, GrantId grant = kGrant) {
    Pull pull{id, pair_->owner_address, grant, pair_->Now() + 20 * kSecond, {}};
    for (uint32_t i = 0; i < kPages; ++i) {
      pull.pages.push_back({i, PageChecksum(from_[i]), to_[i]});
    }
    pair_->requester->Start(std::move(pull));
  }
  bool AwaitEnd(uint64_t id) {
    return pair_->Await([&] { return heard().ended.contains(id); });
  }
  // Pulls until one comes whole: a first try may meet a connection to the process that was.
  void ExpectServes(uint64_t id, GrantId grant = kGrant) {
    for (int tries = 0; tries < 20; ++tries, ++id) {
      StartPull(id, grant);
      ASSERT_TRUE(AwaitEnd(id));
      if (heard().ended.at(id).status == PullStatus::kOk) {
        EXPECT_EQ(heard().Count(id, PageOutcome::kArrived), kPages);
        EXPECT_TRUE(from_ == to_);
        return;
      }
      ASSERT_EQ(heard().ended.at(id).status, PullStatus::kUnreachable);
    }
    FAIL() << "no pull succeeds any more";
  }
  void AwaitNewProcess(const std::unique_ptr<TransferEngine>& engine, pid_t old) {
    ASSERT_TRUE(pair_->Await([&] {
      const pid_t now = Of(engine).process();
      return now != 0 && now != old;
    }));
  }
  Heard& heard() { return pair_->requester_heard; }

  std::unique_ptr<EnginePair> pair_;
  std::vector<Page> from_, to_;
};

// What UCX cannot parse aborts its process.
TEST_F(ProcessEngineTest, WrongBytesOnTheDataPort) {
  OfferAll();
  const pid_t before = Of(pair_->owner).process();
  SendRaw(pair_->owner_address, std::string(64, '\xff'));
  AwaitNewProcess(pair_->owner, before);
  ExpectServes(1);  // what was offered before
  pair_->owner->Revoke(kGrant);
  ASSERT_TRUE(pair_->Await([&] { return pair_->owner_heard.grants.size() == 1; }));
  EXPECT_EQ(pair_->owner->counters().restarts, 1u);
  EXPECT_EQ(pair_->requester->counters().restarts, 0u);
}

TEST_F(ProcessEngineTest, TheRequestersProcessIsKilledInMidPull) {
  OfferAll();
  StartPull(1);
  ASSERT_TRUE(pair_->Await([&] { return heard().Count(1, PageOutcome::kArrived) >= 1; }));
  const pid_t before = Of(pair_->requester).process();
  ASSERT_EQ(kill(before, SIGKILL), 0);
  ASSERT_TRUE(AwaitEnd(1));
  EXPECT_EQ(heard().pages[1].size(), kPages) << "each page has an outcome";
  if (heard().ended.at(1).status != PullStatus::kOk) {
    EXPECT_EQ(heard().ended.at(1).status, PullStatus::kTransferLost);
  }
  EXPECT_EQ(heard().ended.at(1).bytes, heard().Count(1, PageOutcome::kArrived) * kPageBytes);
  for (Page& page : to_) page.assign(kPageBytes, std::byte{0x11});
  AwaitNewProcess(pair_->requester, before);
  for (const Page& page : to_) EXPECT_EQ(page[kPageBytes - 1], std::byte{0x11}) << "written late";
  pair_->owner->Revoke(kGrant);
  ASSERT_TRUE(pair_->Await([&] { return pair_->owner_heard.grants.size() == 1; }));
  OfferAll({1, 1});
  ExpectServes(2, {1, 1});
  const TransferCounters counters = pair_->requester->counters();
  EXPECT_EQ(counters.pages_pulled + counters.pages_failed, counters.pulls * kPages);
  EXPECT_EQ(counters.connections_closed + 1, counters.connections);
}

// FAULTS B2: what was revoked ends when the process has.
TEST_F(ProcessEngineTest, TheOwnersProcessIsKilledWhileItSends) {
  OfferAll();
  StartPull(1);
  ASSERT_TRUE(pair_->Await([&] { return heard().Count(1, PageOutcome::kArrived) >= 1; }));
  const pid_t before = Of(pair_->owner).process();
  ASSERT_EQ(kill(before, SIGSTOP), 0);
  pair_->owner->Revoke(kGrant);
  ASSERT_EQ(kill(before, SIGKILL), 0);
  ASSERT_TRUE(pair_->Await([&] { return pair_->owner_heard.grants.size() == 1; }));
  ASSERT_TRUE(AwaitEnd(1));
  EXPECT_EQ(heard().Count(1, PageOutcome::kBad), 0u);
  AwaitNewProcess(pair_->owner, before);
  OfferAll({1, 1});
  ExpectServes(2, {1, 1});
}

// It hangs: nothing of it is waited for without end.
TEST_F(ProcessEngineTest, AStoppedProcessIsReplaced) {
  OfferAll();
  const pid_t before = Of(pair_->requester).process();
  ASSERT_EQ(kill(before, SIGSTOP), 0);
  Pull pull{1, pair_->owner_address, kGrant, pair_->Now() + kSecond / 10, {}};
  pull.pages.push_back({0, 0, to_[0]});
  pair_->requester->Start(std::move(pull));
  ASSERT_TRUE(AwaitEnd(1));
  EXPECT_EQ(heard().ended.at(1).status, PullStatus::kTransferLost);
  AwaitNewProcess(pair_->requester, before);
  ExpectServes(2);
}

TEST_F(ProcessEngineTest, ManyDeathsInARow) {
  OfferAll();
  for (int i = 0; i < 4; ++i) {
    const pid_t before = Of(pair_->owner).process();
    ASSERT_EQ(kill(before, SIGKILL), 0);
    AwaitNewProcess(pair_->owner, before);
  }
  ExpectServes(1);
  EXPECT_EQ(pair_->owner->counters().restarts, 4u);
}

// A node that is started again at once finds its port free.
TEST_F(ProcessEngineTest, ThePortIsFreeAtTheEnd) {
  OfferAll();
  StartPull(1);
  ASSERT_TRUE(pair_->Await([&] { return heard().Count(1, PageOutcome::kArrived) >= 1; }));
  pair_->owner.reset();
  const auto next = ProcessEngine::Create({.program = kProgram, .listen = pair_->owner_address});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->address(), pair_->owner_address);
  ASSERT_TRUE(AwaitEnd(1));
}

// FAULTS D4, G3: connections that say nothing take all descriptors.
TEST_F(ProcessEngineTest, ManySilentConnections) {
  std::string script = "/tmp/pando-test-XXXXXX";
  {
    const UniqueFd file(::mkstemp(script.data()));
    const std::string text = std::string("#!/bin/sh\nulimit -n 80\nexec ") + kProgram + "\n";
    ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::fchmod(file.get(), 0700), 0);
  }
  pair_->owner = *ProcessEngine::Create({.program = script});
  ::unlink(script.c_str());
  const pid_t before = Of(pair_->owner).process();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 70; ++i) silent.push_back(ConnectRaw(pair_->owner->address()));
  ASSERT_TRUE(pair_->Await([&] { return Of(pair_->owner).process() != before; }));
}

// FAULTS D4: without a descriptor left, extents are added all the same, and the next process starts
// once there are some.
TEST_F(ProcessEngineTest, NoDescriptorIsLeft) {
  std::promise<void> lacked;
  bool told = false;  // the engine's thread's
  pair_->owner = *ProcessEngine::Create(
      {.program = kProgram, .died = [&](const std::string& how, Nanos) {
         if (how.find("Too many open files") == std::string::npos || std::exchange(told, true))
           return;
         lacked.set_value();
       }});
  pair_->owner_address = pair_->owner->address();
  const auto extent = HostExtent::Create(Bytes(0));
  ASSERT_TRUE(extent.ok()) << extent.status();
  const auto mapped = MappedExtent::Map(extent->fd());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Of(pair_->owner).AddMemory(mapped->bytes(), extent->fd());
  const pid_t first = Of(pair_->owner).process();
  EXPECT_EQ(kill(first, SIGKILL), 0);
  const auto ready = lacked.get_future().wait_for(std::chrono::seconds(20));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(ready, std::future_status::ready);
  AwaitNewProcess(pair_->owner, first);
  const auto page = mapped->bytes().first(kPageBytes);
  std::memset(page.data(), 0x3c, page.size());
  uint64_t id = 0;
  do {  // it may not listen yet
    const GrantId grant{2, ++id};
    ASSERT_TRUE(pair_->owner->Start(Offer{grant, {{page}}}));
    pair_->requester->Start(Pull{id,
                                 pair_->owner_address,
                                 grant,
                                 pair_->Now() + 20 * kSecond,
                                 {{0, PageChecksum(page), to_[0]}}});
    ASSERT_TRUE(AwaitEnd(id));
  } while (heard().ended.at(id).status != PullStatus::kOk && id < 1000);
  EXPECT_EQ(heard().ended.at(id).status, PullStatus::kOk);
  pair_->owner.reset();
}

TEST(ProcessEngineStartTest, ATakenPortIsAnError) {
  const auto first = ProcessEngine::Create({.program = kProgram});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = ProcessEngine::Create({.program = kProgram, .listen = (*first)->address()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
}

TEST(ProcessEngineStartTest, AWrongAddressIsAnError) {
  const auto made = ProcessEngine::Create({.program = kProgram, .listen = "somewhere"});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("somewhere"));
}

TEST(ProcessEngineStartTest, AProgramThatIsNotThereIsAnError) {
  const auto made = ProcessEngine::Create({.program = "/nowhere/pando-transfer"});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("/nowhere/pando-transfer"));
}

TEST(ProcessEngineStartTest, AProgramThatEndsAtOnceIsAnError) {
  const auto made = ProcessEngine::Create({.program = "/bin/true"});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("exit status 0"));
}

TEST(ProcessEngineStartTest, ByHandItSaysWhatItIs) {
  FILE* const out = popen((std::string(kProgram) + " 3<&- 2>&1; echo $?").c_str(), "r");
  ASSERT_NE(out, nullptr);
  std::string said(200, '\0');
  said.resize(fread(said.data(), 1, said.size(), out));
  pclose(out);
  EXPECT_THAT(said, HasSubstr("pando-node"));
  EXPECT_THAT(said, HasSubstr("\n2\n"));
}

}  // namespace
}  // namespace pando
