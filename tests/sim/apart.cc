#include "tests/sim/apart.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "radix/base/check.h"

namespace pando::sim {
namespace {

// Written by the process, read when it has gone.
struct Shared {
  uint64_t hash, steps, events, requests, faults;
  Coverage::Counts coverage;
  std::array<char, 1024> violation;
  bool ended;
  uint64_t decisions;
  std::array<Decision, 1u << 20> decision;  // memory is taken as it is written
};

void Live(SimulationOptions options, Shared* shared) {
  options.on_decision = [shared, tell = options.on_decision](Decision decision) {
    if (tell) tell(decision);
    if (shared->decisions < shared->decision.size()) {
      shared->decision[shared->decisions++] = decision;
    }
  };
  const SimulationReport report = Simulate(options);
  shared->hash = report.hash;
  shared->steps = report.steps;
  shared->events = report.events;
  shared->requests = report.requests;
  shared->faults = report.faults;
  shared->coverage = report.coverage;
  if (report.failures > 0) {
    const std::string& first = report.first_failures.front();
    std::strncpy(shared->violation.data(), first.c_str(), shared->violation.size() - 1);
  }
  shared->ended = true;
}

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> part;
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, part.data(), part.size(), at);
    if (got <= 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
    at += got;
  }
}

// The line that says why.
std::string WhyOf(const std::string& said, int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "it did not end in time";
  for (const char* sign : {"broken invariant", "ERROR:", "runtime error"}) {
    const size_t at = said.find(sign);
    if (at == std::string::npos) continue;
    const size_t begin = said.rfind('\n', at) + 1;
    return said.substr(begin, said.find('\n', at) - begin);
  }
  return "the process ended with status " + std::to_string(status);
}

}  // namespace

Outcome RunApart(SimulationOptions options, unsigned seconds) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PANDO_CHECK(memory != MAP_FAILED) << "no memory to share";
  auto* shared = static_cast<Shared*>(memory);
  const int said = ::memfd_create("said", MFD_CLOEXEC);
  PANDO_CHECK(said >= 0) << "no file to write to";
  const pid_t child = ::fork();
  PANDO_CHECK(child >= 0) << "no process";
  if (child == 0) {
    ::dup2(said, STDERR_FILENO);
    ::alarm(seconds);
    Live(std::move(options), shared);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    PANDO_CHECK(errno == EINTR) << "no child " << child;
  }
  Outcome outcome;
  outcome.said = ReadAll(said);
  outcome.violation = shared->ended ? shared->violation.data() : WhyOf(outcome.said, status);
  outcome.hash = shared->hash;
  outcome.steps = shared->steps;
  outcome.events = shared->events;
  outcome.requests = shared->requests;
  outcome.faults = shared->faults;
  outcome.coverage = shared->coverage;
  outcome.decisions.assign(shared->decision.begin(),
                           shared->decision.begin() + static_cast<ptrdiff_t>(shared->decisions));
  ::close(said);
  ::munmap(memory, sizeof(Shared));
  return outcome;
}

}  // namespace pando::sim
