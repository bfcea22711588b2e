#include "node/local/process_watch.h"

#include <poll.h>
#include <sys/epoll.h>

#include <utility>

namespace pando::local {
namespace {

bool HasExited(int pidfd) {
  pollfd ready{pidfd, POLLIN, 0};
  return ::poll(&ready, 1, 0) != 0;
}

}  // namespace

ProcessWatch::ProcessWatch(EventLoop* loop, std::function<void(SessionId)> exited)
    : loop_(loop), exited_(std::move(exited)) {}

ProcessWatch::~ProcessWatch() {
  for (const auto& [key, process] : processes_) {
    loop_->Unwatch(process.watch, process.pidfd.get());
  }
}

uint64_t ProcessWatch::NumberOf(int pid) {
  const auto known = key_by_pid_.find(pid);
  if (known != key_by_pid_.end() && !HasExited(processes_.at(known->second).pidfd.get())) {
    return known->second;
  }
  return ++last_key_;
}

bool ProcessWatch::Add(SessionId session, UniqueFd pidfd, int pid, uint64_t number) {
  if (const auto known = processes_.find(number); known != processes_.end()) {
    known->second.sessions.insert(session);
  } else {
    const EventLoop::WatchId watch =
        loop_->Watch(pidfd.get(), EPOLLIN, [this, number](uint32_t) { Fired(number); });
    if (watch == EventLoop::WatchId::kNone) return false;
    processes_.emplace(number, Process{std::move(pidfd), pid, watch, {session}});
    if (pid > 0) key_by_pid_[pid] = number;
  }
  key_by_session_[session] = number;
  return true;
}

void ProcessWatch::Remove(SessionId session) {
  const auto key = key_by_session_.find(session);
  if (key == key_by_session_.end()) return;
  const auto process = processes_.find(key->second);
  key_by_session_.erase(key);
  process->second.sessions.erase(session);
  if (process->second.sessions.empty()) Take(process);
}

ProcessWatch::Process ProcessWatch::Take(Processes::iterator found) {
  const auto by_pid = key_by_pid_.find(found->second.pid);
  if (by_pid != key_by_pid_.end() && by_pid->second == found->first) key_by_pid_.erase(by_pid);
  Process process = std::move(found->second);
  processes_.erase(found);
  loop_->Unwatch(process.watch, process.pidfd.get());
  return process;
}

void ProcessWatch::Fired(uint64_t key) {
  const Process process = Take(processes_.find(key));
  for (const SessionId session : process.sessions) key_by_session_.erase(session);
  for (const SessionId session : process.sessions) exited_(session);
}

}  // namespace pando::local
