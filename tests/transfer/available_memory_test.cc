#include "transfer/memory/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "transfer/memory/host_slab.h"

namespace pando {
namespace {

constexpr uint64_t kMiB = 1u << 20;

// A machine and its cgroups, as files.
class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    root_ = std::filesystem::path(testing::TempDir()) / ("pando_memory_" + name);
    std::filesystem::remove_all(root_);
    Write("meminfo",
          "MemTotal:  8388608 kB\nMemFree: 10 kB\nMemAvailable:  1048576 kB\nSwap: 0 kB\n");
    Write("self", "3:memory:/elsewhere\n0::/outer/inner\n");
    Write("cgroup/cgroup.controllers", "memory\n");
  }
  ~AvailableMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  absl::StatusOr<Bytes> Available() {
    return internal::AvailableMemoryFrom({.meminfo = root_ / "meminfo",
                                          .self_cgroup = root_ / "self",
                                          .cgroup_root = root_ / "cgroup"});
  }
  uint64_t MiB() { return Available()->value() / kMiB; }

  std::filesystem::path root_;
};

TEST_F(AvailableMemoryTest, IsTheMachinesWithoutLimits) {
  EXPECT_EQ(MiB(), 1024);
  Write("cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(MiB(), 1024);
}

TEST_F(AvailableMemoryTest, IsWhatTheOwnGroupLeaves) {
  Write("cgroup/outer/inner/memory.max", std::to_string(500 * kMiB));
  Write("cgroup/outer/inner/memory.current", std::to_string(200 * kMiB));
  EXPECT_EQ(MiB(), 300);
  Write("cgroup/outer/inner/memory.stat",
        "anon 5\ninactive_file " + std::to_string(50 * kMiB) + "\nslab 9\n");
  EXPECT_EQ(MiB(), 350) << "clean file pages can be dropped";
  Write("cgroup/outer/inner/memory.current", std::to_string(900 * kMiB));
  EXPECT_EQ(MiB(), 0);
}

TEST_F(AvailableMemoryTest, IsWhatTheTightestAncestorLeaves) {
  Write("cgroup/outer/inner/memory.max", std::to_string(500 * kMiB));
  Write("cgroup/outer/memory.max", "max");
  Write("cgroup/outer/memory.high", std::to_string(100 * kMiB));
  Write("cgroup/outer/memory.current", std::to_string(30 * kMiB));
  EXPECT_EQ(MiB(), 70);
  Write("cgroup/memory.max", std::to_string(10 * kMiB));
  EXPECT_EQ(MiB(), 10);
}

TEST_F(AvailableMemoryTest, SaysWhenTheKernelTellsNothing) {
  Write("meminfo", "MemTotal: 5 kB\n");
  EXPECT_FALSE(Available().ok());
}

TEST(AvailableMemory, OfThisMachineIsSomething) {
  const auto available = AvailableMemory();
  ASSERT_TRUE(available.ok()) << available.status();
  EXPECT_GT(available->value(), kMiB);
}

}  // namespace
}  // namespace pando
