// Runs a program to its end and keeps what it said on both streams. Every wait has a deadline. One
// thread.
#ifndef PANDO_TESTS_E2E_CTL_PROGRAM_H_
#define PANDO_TESTS_E2E_CTL_PROGRAM_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace pando::e2e {

struct Ran {
  int exit = -1;  // exit status; -signal if one ended it
  std::string out;
  std::string err;
};

// A program that runs in the background; ends it if it still runs when destroyed.
class Program {
 public:
  explicit Program(const std::vector<std::string>& argv);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }
  // What it has written to stderr so far.
  std::string err() const;
  // Waits until it ends; after `seconds` it is killed and the test has failed.
  Ran Wait(int seconds = 60);

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

Ran Run(const std::vector<std::string>& argv, int seconds = 60);

// Runs the pandoctl of this build.
Ran Pandoctl(std::vector<std::string> arguments, int seconds = 60);
std::string PandoctlPath();

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_CTL_PROGRAM_H_
