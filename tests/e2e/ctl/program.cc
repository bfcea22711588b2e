#include "tests/e2e/ctl/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/paths.h"

namespace pando::e2e {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// True once the process has ended; it is still to be reaped.
bool WaitEnd(pid_t pid, int milliseconds) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  EXPECT_GE(fd, 0);
  pollfd poll_fd{.fd = fd, .events = POLLIN, .revents = 0};
  const bool ended = poll(&poll_fd, 1, milliseconds) == 1;
  close(fd);
  return ended;
}

}  // namespace

Program::Program(const std::vector<std::string>& argv) {
  std::string pattern = std::filesystem::temp_directory_path() / "pando-program-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  const std::string out = folder_ + "/out";
  const std::string err = folder_ + "/err";
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_CREAT | O_WRONLY, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_CREAT | O_WRONLY, 0600);
  EXPECT_EQ(posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ), 0)
      << "cannot start " << argv[0];
  posix_spawn_file_actions_destroy(&actions);
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove_all(folder_);
}

std::string Program::err() const {
  return ReadAll(folder_ + "/err");
}

Ran Program::Wait(int seconds) {
  if (!WaitEnd(pid_, seconds * 1000)) {
    ADD_FAILURE() << "still running after " << seconds << " s";
    kill(pid_, SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return {.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
          .out = ReadAll(folder_ + "/out"),
          .err = err()};
}

Ran Run(const std::vector<std::string>& argv, int seconds) {
  return Program(argv).Wait(seconds);
}

std::string PandoctlPath() {
  return std::filesystem::path(PANDO_BIN_DIR) / "pandoctl";
}

Ran Pandoctl(std::vector<std::string> arguments, int seconds) {
  arguments.insert(arguments.begin(), PandoctlPath());
  return Run(arguments, seconds);
}

}  // namespace pando::e2e
