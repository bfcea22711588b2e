#include "node/local/work_queue.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <future>
#include <thread>

#include "node/local/event_loop.h"

namespace pando::local {
namespace {

constexpr std::chrono::seconds kWait{10};

bool IsReadable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, 0) > 0;
}

TEST(WorkQueue, RefusesWhatIsTooMuchAndRunsTheRestInOrder) {
  WorkQueue queue(2);
  std::string ran;
  EXPECT_FALSE(IsReadable(queue.fd()));
  EXPECT_TRUE(queue.Post([&] { ran += "a"; }));
  EXPECT_TRUE(queue.Post([&] { ran += "b"; }));
  EXPECT_FALSE(queue.Post([&] { ran += "c"; }));
  EXPECT_TRUE(IsReadable(queue.fd()));
  queue.RunAll();
  EXPECT_EQ(ran, "ab");
  EXPECT_FALSE(IsReadable(queue.fd()));
  EXPECT_TRUE(queue.Post([&] { ran += "d"; }));
  queue.RunAll();
  EXPECT_EQ(ran, "abd");
}

TEST(WorkQueue, WorkThatWasGivenUpNeverRuns) {
  WorkQueue queue(8);
  bool ran = false;
  EXPECT_FALSE(queue.RunAndWait([&] { ran = true; }, std::chrono::milliseconds(1)));
  queue.RunAll();
  EXPECT_FALSE(ran);
}

TEST(WorkQueue, ClosingTellsThoseWhoWait) {
  WorkQueue queue(8);
  auto waiter = std::async(std::launch::async,
                           [&] { return queue.RunAndWait([] {}, std::chrono::hours(1)); });
  pollfd ready{queue.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
  queue.Close();
  ASSERT_EQ(waiter.wait_for(kWait), std::future_status::ready);
  EXPECT_FALSE(waiter.get());
  EXPECT_FALSE(queue.Post([] {}));
}

TEST(EventLoop, RunsTheWorkOfOtherThreadsOnItsOwn) {
  EventLoop loop;
  std::thread owner([&] { loop.Run(); });
  std::thread::id seen;
  EXPECT_TRUE(loop.RunAndWait([&] { seen = std::this_thread::get_id(); }, kWait));
  EXPECT_EQ(seen, owner.get_id());
  EXPECT_TRUE(loop.Post([&] { loop.Stop(); }));
  owner.join();
  EXPECT_FALSE(loop.RunAndWait([] {}, kWait)) << "it has ended";
}

TEST(EventLoop, TimersRunInTheirOrderAndOnce) {
  EventLoop loop;
  std::string ran;
  loop.At(2, [&] { ran += "b"; });
  loop.At(1, [&] { ran += "a"; });
  loop.At(3, [&] {
    ran += "c";
    loop.At(0, [&] {
      ran += "d";
      loop.Stop();
    });
  });
  loop.Run();
  EXPECT_EQ(ran, "abcd");
}

}  // namespace
}  // namespace pando::local
