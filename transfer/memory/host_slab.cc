#include "transfer/memory/host_slab.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "radix/base/units.h"

namespace pando {
namespace {

constexpr uint64_t kPopulateStep = 4u << 20;
static_assert(kExtentBytes.value() % kPopulateStep == 0);
constexpr int kResizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::Status Failed(const char* what) {
  const int error = errno;
  return absl::ErrnoToStatus(error, what);
}

// OK if `more` bytes can be taken and `reserve` still be left.
absl::Status CheckRoom(Bytes more, Bytes reserve) {
  const absl::StatusOr<Bytes> left = AvailableMemory();
  if (!left.ok()) return left.status();
  if (*left >= more && *left - more >= reserve) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      FormatBytes(*left) + " of memory are available; an extent needs " + FormatBytes(more) +
      " more and " + FormatBytes(reserve) + " are to stay free: make the host slab smaller");
}

// Takes the memory now, step by step, so that the machine running short is noticed on the way and
// nobody pays for the first touch later. The kernel zeroes it.
absl::Status Populate(int fd, Bytes reserve) {
  for (uint64_t at = 0; at < kExtentBytes.value(); at += kPopulateStep) {
    absl::Status room = CheckRoom(Bytes(kPopulateStep), reserve);
    if (!room.ok()) return room;
    int result = 0;
    do {
      result = fallocate(fd, 0, static_cast<off_t>(at), static_cast<off_t>(kPopulateStep));
    } while (result != 0 && errno == EINTR);
    if (result != 0) return Failed("populating an extent of the host slab");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HostExtent> HostExtent::Create(Bytes reserve) {
  absl::Status status = CheckRoom(kExtentBytes, reserve);
  if (!status.ok()) return status;
  UniqueFd fd(memfd_create("pando-extent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Failed("memfd_create for an extent of the host slab");
  if (ftruncate(fd.get(), static_cast<off_t>(kExtentBytes.value())) != 0) {
    return Failed("sizing an extent of the host slab");
  }
  status = Populate(fd.get(), reserve);
  if (!status.ok()) return status;
  if (fcntl(fd.get(), F_ADD_SEALS, kResizeSeals | F_SEAL_SEAL) != 0) {
    return Failed("sealing an extent of the host slab");
  }
  return HostExtent(std::move(fd));
}

absl::StatusOr<MappedExtent> MappedExtent::Map(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kResizeSeals) != kResizeSeals) {
    return absl::FailedPreconditionError(
        "an extent's fd is not a memfd that is sealed against resizing");
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0) return Failed("fstat of an extent");
  if (static_cast<uint64_t>(info.st_size) != kExtentBytes.value()) {
    return absl::FailedPreconditionError("an extent has " + std::to_string(info.st_size) +
                                         " bytes instead of " +
                                         std::to_string(kExtentBytes.value()));
  }
  void* start = mmap(nullptr, kExtentBytes.value(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) return Failed("mapping an extent");
  MappedExtent extent({static_cast<std::byte*>(start), kExtentBytes.value()});
  if (madvise(start, kExtentBytes.value(), MADV_DONTFORK) != 0) {
    return Failed("keeping an extent from children");
  }
  return extent;
}

MappedExtent::MappedExtent(MappedExtent&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

MappedExtent& MappedExtent::operator=(MappedExtent&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedExtent::~MappedExtent() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

std::span<std::byte> MappedExtent::Release() {
  return std::exchange(bytes_, {});
}

void Prefault(std::span<std::byte> mapping) {
  madvise(mapping.data(), mapping.size(), MADV_POPULATE_WRITE);
}

}  // namespace pando
