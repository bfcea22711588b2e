#include "transfer/memory/host_slab.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace pando {
namespace {

constexpr off_t kExtent = 64 << 20;

class Memfd {
 public:
  Memfd(off_t size, int seals) : fd_(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(fd_, size), 0);
    EXPECT_EQ(fcntl(fd_, F_ADD_SEALS, seals), 0);
  }
  ~Memfd() { close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

TEST(HostExtent, IsPopulatedZeroedAndCannotBeResized) {  // FAULTS C9
  auto extent = HostExtent::Create(Bytes(0));
  ASSERT_TRUE(extent.ok()) << extent.status();
  struct stat info = {};
  ASSERT_EQ(fstat(extent->fd(), &info), 0);
  EXPECT_EQ(info.st_size, kExtent);
  EXPECT_EQ(info.st_blocks * 512, kExtent) << "not all of it is there";
  EXPECT_NE(ftruncate(extent->fd(), kExtent / 2), 0);
  EXPECT_NE(ftruncate(extent->fd(), kExtent * 2), 0);
  EXPECT_NE(fcntl(extent->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "an engine could seal it too";
  auto mapped = MappedExtent::Map(extent->fd());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_TRUE(std::ranges::all_of(mapped->bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(HostExtent, LeavesTheReserve) {
  const auto extent = HostExtent::Create(Bytes(uint64_t{1} << 50));
  ASSERT_FALSE(extent.ok());
  EXPECT_EQ(extent.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(extent.status().message().find("make the host slab smaller"), std::string::npos);
}

TEST(HostExtent, ClosesItsFdOnce) {
  auto first = HostExtent::Create(Bytes(0));
  ASSERT_TRUE(first.ok());
  const int fd = first->fd();
  {
    const HostExtent second = *std::move(first);
    EXPECT_EQ(second.fd(), fd);
    EXPECT_EQ(first->fd(), -1);
    EXPECT_NE(fcntl(fd, F_GETFD), -1);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(MappedExtent, TwoMappingsShareTheBytesAndOutliveTheFd) {  // FAULTS C4
  auto extent = HostExtent::Create(Bytes(0));
  ASSERT_TRUE(extent.ok());
  auto one = MappedExtent::Map(extent->fd());
  auto two = MappedExtent::Map(extent->fd());
  ASSERT_TRUE(one.ok() && two.ok());
  *extent = HostExtent(*HostExtent::Create(Bytes(0)));  // the first one's fd goes
  one->bytes()[12345] = std::byte{42};
  EXPECT_EQ(two->bytes()[12345], std::byte{42});
}

long FaultsOfThisThread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

TEST(MappedExtent, PrefaultedHasItsBytesAndNoFaultsLeft) {
  auto extent = HostExtent::Create(Bytes(0));
  ASSERT_TRUE(extent.ok());
  auto engine = MappedExtent::Map(extent->fd());
  auto node = MappedExtent::Map(extent->fd());
  ASSERT_TRUE(engine.ok() && node.ok());
  engine->bytes()[777] = std::byte{42};
  Prefault(node->bytes());
  EXPECT_EQ(node->bytes()[777], std::byte{42});
  const long before = FaultsOfThisThread();
  for (size_t at = 0; at < node->bytes().size(); at += 4096) node->bytes()[at] = std::byte{1};
  EXPECT_LT(FaultsOfThisThread() - before, 4096) << "of 16,384 pages";  // a sanitizer has its own
  EXPECT_EQ(engine->bytes()[4096], std::byte{1});
}

TEST(MappedExtent, RefusesWhatCouldShrink) {  // FAULTS C9
  const Memfd unsealed(kExtent, 0);
  EXPECT_EQ(MappedExtent::Map(unsealed.fd()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const Memfd can_shrink(kExtent, F_SEAL_GROW);
  EXPECT_EQ(MappedExtent::Map(can_shrink.fd()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const Memfd can_grow(kExtent, F_SEAL_SHRINK);
  EXPECT_EQ(MappedExtent::Map(can_grow.fd()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(MappedExtent, RefusesAnotherSize) {
  for (const off_t size : {off_t{0}, off_t{4096}, kExtent - 4096, kExtent + 4096}) {
    const Memfd other(size, F_SEAL_SHRINK | F_SEAL_GROW);
    const auto mapped = MappedExtent::Map(other.fd());
    ASSERT_FALSE(mapped.ok()) << size;
    EXPECT_NE(mapped.status().message().find(std::to_string(size) + " bytes"), std::string::npos);
  }
}

TEST(MappedExtent, RefusesWhatIsNoMemfd) {
  EXPECT_FALSE(MappedExtent::Map(-1).ok());
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_FALSE(MappedExtent::Map(null).ok());
  close(null);
}

TEST(MappedExtent, IsNotInAChild) {  // FAULTS D7
  const Memfd memfd(kExtent, F_SEAL_SHRINK | F_SEAL_GROW);
  auto mapped = MappedExtent::Map(memfd.fd());
  ASSERT_TRUE(mapped.ok());
  const pid_t child = fork();
  if (child == 0) {
    unsigned char there = 0;
    const bool gone = mincore(mapped->bytes().data(), 4096, &there) != 0 && errno == ENOMEM;
    _exit(gone ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(MappedExtent, UnmapsWhenItGoesUnlessReleased) {
  const Memfd memfd(kExtent, F_SEAL_SHRINK | F_SEAL_GROW);
  std::byte* start = nullptr;
  unsigned char there = 0;
  {
    auto mapped = MappedExtent::Map(memfd.fd());
    ASSERT_TRUE(mapped.ok());
    start = mapped->bytes().data();
    EXPECT_EQ(mincore(start, 4096, &there), 0);
  }
  EXPECT_NE(mincore(start, 4096, &there), 0);
  std::span<std::byte> kept;
  {
    auto mapped = MappedExtent::Map(memfd.fd());
    ASSERT_TRUE(mapped.ok());
    kept = mapped->Release();
  }
  EXPECT_EQ(mincore(kept.data(), 4096, &there), 0);
  munmap(kept.data(), kept.size());
}

}  // namespace
}  // namespace pando
