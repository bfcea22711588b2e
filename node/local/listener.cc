#include "node/local/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace pando::local {
namespace {

constexpr int kBacklog = 1024;
constexpr mode_t kMode = 0660;
constexpr size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;

absl::Status Failure(const std::string& path, const std::string& what) {
  return absl::FailedPreconditionError("socket " + path + ": " + what);
}

std::string ErrorText(const char* call) {
  return std::string(call) + ": " + std::strerror(errno);
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Whether somebody accepts connections at `path`.
bool IsAlive(const std::string& path) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = AddressOf(path);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return true;
  }
  // EAGAIN: its backlog is full. EACCES: not ours to judge, so not ours to remove.
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace

absl::Status ClearSocketPath(const std::string& path) {
  if (path.empty() || path.size() > kPathMax) {
    return Failure(path, "found a path of " + std::to_string(path.size()) +
                             " bytes; allowed are 1 to " + std::to_string(kPathMax));
  }
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!directory.empty() && !std::filesystem::is_directory(directory, error)) {
    if (error == std::errc::permission_denied) {
      return Failure(path, "directory " + directory.string() +
                               ": permission denied; choose one that this user may search");
    }
    return Failure(path, "there is no directory " + directory.string() + "; create it first");
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return Failure(path,
                   "a file that is no socket is in the way; remove it or choose another path");
  }
  if (IsAlive(path)) {
    return Failure(path, "another process listens there; stop it or choose another path");
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Failure(path, ErrorText("unlink"));
  return absl::OkStatus();
}

absl::StatusOr<Listener> Listener::Bind(const std::string& path) {
  if (absl::Status clear = ClearSocketPath(path); !clear.ok()) return clear;
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Failure(path, ErrorText("socket"));
  // Before bind, so that the socket is never open to more than it should be; after it, because the
  // umask may have taken something away.
  ::fchmod(fd.get(), kMode);
  const sockaddr_un address = AddressOf(path);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failure(path, ErrorText("bind"));
  }
  if (::chmod(path.c_str(), kMode) != 0) return Failure(path, ErrorText("chmod"));
  absl::StatusOr<SocketFile> file = SocketFile::At(path);
  if (!file.ok()) return file.status();
  if (::listen(fd.get(), kBacklog) != 0) return Failure(path, ErrorText("listen"));
  return Listener(std::move(fd), *std::move(file));
}

absl::StatusOr<SocketFile> SocketFile::At(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return Failure(path, ErrorText("lstat"));
  return SocketFile(path, found.st_dev, found.st_ino);
}

SocketFile::SocketFile(std::string path, dev_t device, ino_t inode)
    : path_(std::move(path)), device_(device), inode_(inode) {}

SocketFile::SocketFile(SocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

SocketFile::~SocketFile() {
  struct stat found {};
  if (path_.empty() || ::lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) ::unlink(path_.c_str());
}

}  // namespace pando::local
