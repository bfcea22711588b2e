#include "client/python/copy_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace pando::python {
namespace {

using client::NowNanos;

// How often a session that has nothing to do looks at the node.
constexpr int kLookMillis = 5'000, kLookDetachedMillis = 100;
// What a job that comes meanwhile waits for: half a millisecond.
constexpr size_t kPrefaultBytes = 1u << 20;
constexpr const char* kForkedText = "this process was forked: make a CopyThread of its own";

}  // namespace

CopyThread::CopyThread(client::Options options, int64_t copy_ns, int64_t call_ns)
    : client_(client::Client::Create(std::move(options))),
      copy_ns_(copy_ns),
      call_ns_(call_ns),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      process_(::getpid()),
      thread_([this] { Run(); }) {
  ::pthread_setname_np(thread_.native_handle(), "pando-copy");
}

CopyThread::~CopyThread() {
  Close();
}

bool CopyThread::forked() const {
  return ::getpid() != process_;
}

bool CopyThread::Submit(uint64_t tag, std::shared_ptr<CopyJob> job, bool load) {
  if (forked()) return false;
  const int64_t now = NowNanos();
  {
    const std::lock_guard lock(mutex_);
    if (closing_) {
      CopyResult lost{.message = "the copy thread is closed", .store = !load, .stopped = true};
      ended_.push_back({tag, std::move(lost), 0, std::move(job)});
      return true;
    }
    (load ? loads_ : stores_).push_back({tag, std::move(job), now});
  }
  Wake();
  return true;
}

std::vector<EndedCopy> CopyThread::TakeEnded() {
  if (forked()) return {};
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

void CopyThread::Close() {
  if (forked()) {
    if (!left_to_parent_.exchange(true) && thread_.joinable()) thread_.detach();
    return;
  }
  const std::lock_guard closes(close_mutex_);
  if (!thread_.joinable()) return;
  std::vector<std::shared_ptr<CopyJob>> jobs;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const auto* const queue : {&loads_, &stores_}) {
      for (const Waiting& waiting : *queue) jobs.push_back(waiting.job);
    }
    if (running_) jobs.push_back(running_);
  }
  Wake();
  for (const std::shared_ptr<CopyJob>& job : jobs) job->Stop();
  thread_.join();
}

client::State CopyThread::state() const {
  if (forked()) return client::State::kForked;
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string CopyThread::last_error() const {
  if (forked()) return kForkedText;
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void CopyThread::Run() {
  for (Waiting next; Next(&next);) {
    EndedCopy ended;
    ended.tag = next.tag;
    ended.result = next.job->Execute(client_.get(), next.submitted_ns + copy_ns_, call_ns_);
    ended.in_all_ns = NowNanos() - next.submitted_ns;
    ended.job = std::move(next.job);
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
    ended_.push_back(std::move(ended));
  }
}

bool CopyThread::Next(Waiting* next) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      std::deque<Waiting>& queue = loads_.empty() ? stores_ : loads_;
      if (!queue.empty()) {
        *next = std::move(queue.front());
        queue.pop_front();
        running_ = next->job;
        return true;
      }
      if (closing_) return false;
    }
    Look();
    if (!client_->Prefault(kPrefaultBytes)) Sleep();
  }
}

void CopyThread::Look() {
  client_->Poll();
  const std::lock_guard lock(mutex_);
  state_ = client_->state();
  last_error_ = client_->last_error();
}

// Until there is a job, or something of the node: also its end is heard of at once.
void CopyThread::Sleep() {
  const short wanted = client_->wants_write() ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> fds{{{wake_.get(), POLLIN, 0}, {client_->fd(), wanted, 0}}};
  const bool attached = client_->state() == client::State::kAttached;
  ::poll(fds.data(), fds.size(), attached ? kLookMillis : kLookDetachedMillis);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
}

void CopyThread::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(wake_.get(), &one, sizeof(one));
}

}  // namespace pando::python
