#include "transfer/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

extern char** environ;

namespace pando::transfer {
namespace {

// UCX takes SIGSEGV and others for itself when its library is loaded, unless told not to; and on a
// fault it writes all threads' stacks, where its one line says it.
constexpr std::array<std::string_view, 2> kWanted{"UCX_ERROR_SIGNALS=", "UCX_HANDLE_ERRORS=none"};

// The environment of ours and what is wanted in it; what is set stands.
std::vector<std::string> ChildEnvironment() {
  std::vector<std::string> out;
  for (char** one = environ; *one != nullptr; ++one) out.emplace_back(*one);
  for (const std::string_view wanted : kWanted) {
    const std::string_view name = wanted.substr(0, wanted.find('=') + 1);
    const bool set = std::any_of(out.begin(), out.end(),
                                 [&](const std::string& one) { return one.starts_with(name); });
    if (!set) out.emplace_back(wanted);
  }
  return out;
}

absl::StatusOr<pid_t> Spawn(const std::string& program, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, kChildSocket);
  posix_spawn_file_actions_addclosefrom_np(&actions, kChildSocket + 1);
  std::vector<std::string> environment = ChildEnvironment();
  std::vector<char*> variables;
  variables.reserve(environment.size() + 1);
  for (std::string& one : environment) variables.push_back(one.data());
  variables.push_back(nullptr);
  std::string path = program;
  std::array<char*, 2> arguments{path.data(), nullptr};
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, path.c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return absl::UnavailableError("cannot start " + program + ": " + std::strerror(error) +
                                "; it belongs beside pando-node");
}

std::string HowItEnded(int status) {
  if (WIFEXITED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
  if (!WIFSIGNALED(status)) return "unknown";
  const int signal = WTERMSIG(status);
  return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

}  // namespace

absl::StatusOr<Child> Child::Start(const std::string& program, UniqueFd* socket) {
  std::array<int, 2> pair{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return absl::UnavailableError(std::string("a socket pair: ") + std::strerror(errno));
  }
  UniqueFd ours(pair[0]), theirs(pair[1]);
  if (theirs.get() == kChildSocket) {  // dup2 of itself would leave it to be closed at exec
    theirs.reset(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, kChildSocket + 1));
    if (!theirs.valid())
      return absl::UnavailableError(std::string("a socket: ") + std::strerror(errno));
  }
  const absl::StatusOr<pid_t> pid = Spawn(program, theirs.get());
  if (!pid.ok()) return pid.status();
  *socket = std::move(ours);
  return Child(*pid);
}

Child::~Child() {
  if (pid_ > 0) Reap(0);
}

std::string Child::Reap(Nanos patience) {
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{handle.get(), POLLIN, 0};
  const bool by_itself = patience > 0 && handle.valid() &&
                         ::poll(&ended, 1, static_cast<int>(patience / 1'000'000)) == 1;
  if (!by_itself) ::kill(pid_, SIGKILL);
  int status = 0;
  pid_t got = -1;
  do {
    got = ::waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  pid_ = -1;
  return got < 0 ? "unknown" : HowItEnded(status);
}

std::string ProgramBeside(const std::string& name) {
  std::array<char, PATH_MAX + 1> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), PATH_MAX);
  const std::string self(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}

}  // namespace pando::transfer
