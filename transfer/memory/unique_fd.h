// An owned file descriptor, closed when it goes. Owner: whoever holds it.
#ifndef PANDO_TRANSFER_MEMORY_UNIQUE_FD_H_
#define PANDO_TRANSFER_MEMORY_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace pando {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_MEMORY_UNIQUE_FD_H_
