#include "tests/e2e/process/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace pando::e2e {
namespace {

int MillisUntil(int64_t deadline) {
  const int64_t left = deadline - Now();
  return left <= 0 ? 0 : static_cast<int>(left / 1'000'000 + 1);
}

void ExecChild(const std::vector<std::string>& argv, int in, int out, bool quiet) {
  dup2(in, 0);
  dup2(out, 1);
  if (quiet) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
  }
  std::vector<char*> args;
  args.reserve(argv.size() + 1);
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  execv(args[0], args.data());
  _exit(127);
}

}  // namespace

int64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

Child::Child(const std::vector<std::string>& argv, bool quiet) {
  signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> in{}, out{};
  EXPECT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  pid_ = fork();
  if (pid_ == 0) ExecChild(argv, in[0], out[1], quiet && std::getenv("PANDO_TEST_LOUD") == nullptr);
  close(in[0]);
  close(out[1]);
  in_ = in[1];
  out_ = out[0];
}

Child::~Child() {
  if (!status_) {
    Signal(SIGKILL);
    EXPECT_TRUE(WaitExit(Now() + 10 * kSecond))
        << "child " << pid_ << " does not end after SIGKILL";
  }
  if (in_ >= 0) close(in_);
  close(out_);
}

bool Child::Send(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  return write(in_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void Child::CloseInput() {
  close(in_);
  in_ = -1;
}

std::optional<std::string> Child::ReadLine(int64_t deadline) {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd poll_fd{.fd = out_, .events = POLLIN, .revents = 0};
    const int ready = poll(&poll_fd, 1, MillisUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 4096> bytes{};
    const ssize_t n = read(out_, bytes.data(), bytes.size());
    if (n <= 0) return std::nullopt;
    buffer_.append(bytes.data(), static_cast<size_t>(n));
  }
}

std::optional<std::string> Child::ReadUntil(std::string_view prefix, int64_t deadline) {
  while (std::optional<std::string> line = ReadLine(deadline)) {
    if (line->starts_with(prefix)) return line;
  }
  return std::nullopt;
}

void Child::Signal(int signal) const {
  kill(pid_, signal);
}

std::optional<int> Child::Reap(int options) {
  int status = 0;
  const pid_t got = waitpid(pid_, &status, options | WNOHANG);
  if (got != pid_) return std::nullopt;
  if (!WIFSTOPPED(status) && !WIFCONTINUED(status)) status_ = status;
  return status;
}

bool Child::WaitStopped(int64_t deadline) {
  while (!status_) {
    const std::optional<int> status = Reap(WUNTRACED);
    if (status && WIFSTOPPED(*status)) return true;
    if (Now() >= deadline) return false;
    poll(nullptr, 0, 1);
  }
  return false;
}

std::optional<int> Child::WaitExit(int64_t deadline) {
  while (!status_) {
    Reap(0);
    if (status_ || Now() >= deadline) break;
    poll(nullptr, 0, 1);
  }
  return status_;
}

std::optional<std::string> RunToEnd(const std::vector<std::string>& argv, int64_t deadline) {
  Child child(argv);
  std::string output;
  while (std::optional<std::string> line = child.ReadLine(deadline)) output += *line + "\n";
  const std::optional<int> status = child.WaitExit(deadline);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0) return std::nullopt;
  return output;
}

}  // namespace pando::e2e
