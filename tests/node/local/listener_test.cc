#include "node/local/listener.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "tests/node/local/raw_engine.h"
#include "tests/node/local/without_privileges.h"

namespace pando::local {
namespace {

class ListenerTest : public testing::Test {
 protected:
  ListenerTest() {
    std::string folder = "/tmp/pando-test-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder + "/s.sock";
  }
  ~ListenerTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(ListenerTest, BindsWithItsModeAndUnlinksAtItsEnd) {
  const mode_t before = ::umask(0);
  {
    const auto listener = Listener::Bind(path_);
    ASSERT_TRUE(listener.ok()) << listener.status();
    struct stat found {};
    ASSERT_EQ(::lstat(path_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0660u);
    EXPECT_TRUE(RawEngine(path_).connected());
  }
  ::umask(before);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// FAULTS G5
TEST_F(ListenerTest, NeverTakesALiveSocketOver) {
  const auto first = Listener::Bind(path_);
  ASSERT_TRUE(first.ok());
  const auto second = Listener::Bind(path_);
  EXPECT_FALSE(second.ok());
  EXPECT_TRUE(RawEngine(path_).connected()) << "the first one still listens";
}

TEST_F(ListenerTest, RemovesASocketThatADeadProcessLeft) {
  {
    const auto listener = Listener::Bind(path_);
    ASSERT_TRUE(listener.ok());
    std::filesystem::rename(path_, path_ + ".kept");
  }
  std::filesystem::rename(path_ + ".kept", path_);
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(Listener::Bind(path_).ok());
}

TEST_F(ListenerTest, LeavesAnothersSocketAlone) {
  auto first = Listener::Bind(path_);
  ASSERT_TRUE(first.ok());
  std::filesystem::remove(path_);
  const auto second = Listener::Bind(path_);
  ASSERT_TRUE(second.ok());
  { const Listener ends = *std::move(first); }
  EXPECT_TRUE(RawEngine(path_).connected());
}

// FAULTS G5
TEST_F(ListenerTest, SaysWhatIsWrongWithAPath) {
  std::ofstream(path_) << "not a socket";
  EXPECT_NE(Listener::Bind(path_).status().message().find("no socket"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path_));

  const auto missing = Listener::Bind((folder_ / "no" / "s.sock").string());
  EXPECT_NE(missing.status().message().find("no directory"), std::string::npos);

  std::filesystem::permissions(folder_, std::filesystem::perms::none);
  {
    const WithoutPrivileges without(CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH);
    const auto closed = Listener::Bind((folder_ / "inner" / "s.sock").string());
    EXPECT_NE(closed.status().message().find("permission denied"), std::string::npos)
        << closed.status();
  }
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);

  const auto too_long = Listener::Bind((folder_ / std::string(120, 'x')).string());
  EXPECT_NE(too_long.status().message().find("allowed are 1 to 107"), std::string::npos);
}

}  // namespace
}  // namespace pando::local
