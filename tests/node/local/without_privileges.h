// Takes privileges from this thread for as long as it lives, so that a test that runs as root sees
// what others do. No effect where there were none.
#ifndef PANDO_TESTS_NODE_LOCAL_WITHOUT_PRIVILEGES_H_
#define PANDO_TESTS_NODE_LOCAL_WITHOUT_PRIVILEGES_H_

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace pando::local {

class WithoutPrivileges {
 public:
  // CAP_...
  template <class... Which>
  explicit WithoutPrivileges(Which... which) {
    ::syscall(SYS_capget, &header_, before_.data());
    auto less = before_;
    less[0].effective &= ~((1u << which) | ...);
    ::syscall(SYS_capset, &header_, less.data());
  }
  ~WithoutPrivileges() { ::syscall(SYS_capset, &header_, before_.data()); }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> before_{};
};

}  // namespace pando::local

#endif  // PANDO_TESTS_NODE_LOCAL_WITHOUT_PRIVILEGES_H_
