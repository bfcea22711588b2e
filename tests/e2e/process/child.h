// A child process of a test, with its stdin and stdout as lines. Every wait has a deadline. One
// thread.
#ifndef PANDO_TESTS_E2E_PROCESS_CHILD_H_
#define PANDO_TESTS_E2E_PROCESS_CHILD_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pando::e2e {

inline constexpr int64_t kSecond = 1'000'000'000;

// CLOCK_MONOTONIC, now.
int64_t Now();

class Child {
 public:
  // argv[0] is a path. The child's stderr is the test's, or /dev/null when `quiet`.
  explicit Child(const std::vector<std::string>& argv, bool quiet = true);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Kills it if it still runs.
  ~Child();

  pid_t pid() const { return pid_; }
  int out() const { return out_; }   // its stdout, to poll
  void CloseInput();                 // the end of its stdin
  bool Send(std::string_view line);  // adds the newline; false once the child has gone
  // The next whole line of stdout; nullopt at the deadline or at the end of stdout.
  std::optional<std::string> ReadLine(int64_t deadline);
  // Reads lines until one starts with `prefix`; nullopt at the deadline or at the end.
  std::optional<std::string> ReadUntil(std::string_view prefix, int64_t deadline);
  void Signal(int signal) const;
  // True once the child is stopped (SIGSTOP has taken effect); false at the deadline or if it
  // ended.
  bool WaitStopped(int64_t deadline);
  // The wait status; nullopt at the deadline.
  std::optional<int> WaitExit(int64_t deadline);

 private:
  std::optional<int> Reap(int options);

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string buffer_;
  std::optional<int> status_;
};

// Runs a program to its end; its stdout, or nullopt if it did not exit with 0 before the deadline.
std::optional<std::string> RunToEnd(const std::vector<std::string>& argv, int64_t deadline);

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_PROCESS_CHILD_H_
