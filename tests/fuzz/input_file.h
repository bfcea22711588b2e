// An input as a file that can be opened by its path while the object lives. One thread.
#ifndef PANDO_TESTS_FUZZ_INPUT_FILE_H_
#define PANDO_TESTS_FUZZ_INPUT_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "radix/base/check.h"
#include "tests/fuzz/targets.h"
#include "transfer/memory/unique_fd.h"

namespace pando::fuzz {

class InputFile {
 public:
  explicit InputFile(Input input) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(input.size());
    PANDO_CHECK(input.empty() || ::write(file_.get(), input.data(), input.size()) == size)
        << "no memory for a file";
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  UniqueFd file_;
};

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_INPUT_FILE_H_
