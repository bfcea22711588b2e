#include "transfer/process/process_engine.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "transfer/memory/unique_fd.h"
#include "transfer/process/child.h"
#include "transfer/process/process_link.h"

namespace pando {
namespace {

using transfer::Child;
using transfer::ProcessLink;

constexpr Nanos kOpenTimeout = 10'000'000'000;
constexpr Nanos kHealthy = 10'000'000'000;  // a life of this length begins the pauses anew
constexpr Nanos kPauseMin = 100'000'000, kPauseMax = 5'000'000'000;
constexpr Nanos kLookEvery = 1'000'000'000;  // whether it is stuck, while something is open
constexpr Nanos kLookIdle = 600'000'000'000;
constexpr Nanos kEndPatience = 500'000'000;  // it ends when its socket does

Nanos Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

v1::TransferOpen OpenOf(const ProcessEngineOptions& options) {
  v1::TransferOpen open = transfer::Encode(options.limits);
  open.set_listen(options.listen);
  open.set_rendezvous_from(options.rendezvous_from);
  return open;
}

}  // namespace

// The thread that starts, hears and reaps the process, and the lock on all that is known of it.
class ProcessEngine::Link {
 public:
  explicit Link(ProcessEngineOptions given) : options(std::move(given)), link(OpenOf(options)) {
    if (options.program.empty()) options.program = transfer::ProgramBeside("pando-transfer");
  }

  void Run(std::promise<absl::Status> opened);
  void Call(const std::function<void(ProcessLink&)>& call);
  void Stop();

  ProcessEngineOptions options;
  std::thread thread;
  mutable std::mutex mutex;
  ProcessLink link;  // guarded by mutex, as what follows
  pid_t process = 0;
  bool looks = false;  // the thread looks every kLookEvery
  bool stop = false;

 private:
  // One life: from its start to its end. How it ended; empty: because all ends.
  std::string Live(std::promise<absl::Status>* opened);
  std::string Attend(std::promise<absl::Status>* opened, Nanos started);
  // False: all ends.
  bool Pause(Nanos pause);
  void Wait(Nanos until);
  void Tell(bool had_events);

  const UniqueFd wake_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

// ---- The thread

void ProcessEngine::Link::Run(std::promise<absl::Status> opened) {
  Nanos pause = 0;
  std::promise<absl::Status>* first = &opened;
  for (;;) {
    const Nanos start = Now();
    const std::string how = Live(first);
    if (how.empty()) return;
    if (first != nullptr) {
      const std::lock_guard lock(mutex);
      const std::optional<absl::Status>& answer = link.opened();
      if (!answer || !answer->ok()) {
        return first->set_value(answer ? *answer
                                       : absl::UnavailableError(options.program + ": " + how));
      }
      first = nullptr;
    }
    pause = Now() - start >= kHealthy ? 0 : std::clamp(2 * pause, kPauseMin, kPauseMax);
    if (options.died) options.died(how, pause);
    if (!Pause(pause)) return;
  }
}

std::string ProcessEngine::Link::Live(std::promise<absl::Status>* opened) {
  UniqueFd socket;
  absl::StatusOr<Child> child = Child::Start(options.program, &socket);
  if (!child.ok()) return std::string(child.status().message());
  const Nanos started = Now();
  {
    const std::lock_guard lock(mutex);
    link.Started(std::move(socket), started);
    process = child->pid();
  }
  std::string how = Attend(opened, started);
  bool ends = false;
  {
    const std::lock_guard lock(mutex);
    ends = stop;
    link.Lost();  // closes the socket
    process = 0;
  }
  const std::string status = child->Reap(ends || how.empty() ? kEndPatience : 0);
  bool had_events = false;
  {
    const std::lock_guard lock(mutex);
    had_events = !link.events().empty();
    link.Reaped();
    if (ends) return "";
  }
  Tell(had_events);
  return how.empty() ? status : how + ", " + status;
}

// Until it is lost (empty), or to be given up (why).
std::string ProcessEngine::Link::Attend(std::promise<absl::Status>* opened, Nanos started) {
  bool told = false;
  for (;;) {
    Nanos until = 0;
    bool had_events = false, there = false;
    std::optional<absl::Status> answer;
    {
      const std::lock_guard lock(mutex);
      if (stop) return "";
      const Nanos now = Now();
      had_events = !link.events().empty();
      there = link.Move(now);
      answer = link.opened();
      if (!answer && now - started > kOpenTimeout) return "it does not answer";
      if (link.Stuck(now)) return "it does not move";
      looks = link.anything_open();
      until = now + (!answer ? kOpenTimeout : looks ? kLookEvery : kLookIdle);
    }
    Tell(had_events);
    if (answer && !answer->ok()) return std::string(answer->message());
    if (answer && !told) {
      if (opened != nullptr) {
        opened->set_value(absl::OkStatus());
      } else if (options.back) {
        options.back();
      }
      told = true;
    }
    if (!there) return "";
    Wait(until);
  }
}

bool ProcessEngine::Link::Pause(Nanos pause) {
  for (const Nanos until = Now() + pause;;) {
    {
      const std::lock_guard lock(mutex);
      if (stop) return false;
    }
    if (Now() >= until) return true;
    Wait(until);
  }
}

// Until something comes, or `until`.
void ProcessEngine::Link::Wait(Nanos until) {
  pollfd socket{-1, POLLIN, 0};
  {
    const std::lock_guard lock(mutex);
    if (const transfer::MessageSocket* const is = link.socket()) {
      socket.fd = is->fd();
      if (is->wants_write()) socket.events |= POLLOUT;
    }
  }
  const Nanos left = std::clamp<Nanos>(until - Now(), 0, kLookIdle);
  std::array<pollfd, 2> fds{{socket, {wake_.get(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), static_cast<int>(left / 1'000'000 + 1));
  uint64_t count = 0;
  if (fds[1].revents != 0) [[maybe_unused]]
    const ssize_t got = read(wake_.get(), &count, sizeof(count));
}

// Whoever takes the events takes all, so only the first one's coming is told.
void ProcessEngine::Link::Tell(bool had_events) {
  {
    const std::lock_guard lock(mutex);
    if (had_events || link.events().empty()) return;
  }
  if (options.notify) options.notify();
}

// ---- The owner's thread

void ProcessEngine::Link::Call(const std::function<void(ProcessLink&)>& call) {
  bool wake = false, tell = false;
  {
    const std::lock_guard lock(mutex);
    const bool events = !link.events().empty();
    call(link);
    const transfer::MessageSocket* const socket = link.socket();
    wake = socket != nullptr && (socket->wants_write() || (link.anything_open() && !looks));
    looks |= wake;
    tell = !events && !link.events().empty();
  }
  const uint64_t one = 1;
  if (wake) [[maybe_unused]]
    const ssize_t put = write(wake_.get(), &one, sizeof(one));
  if (tell && options.notify) options.notify();
}

void ProcessEngine::Link::Stop() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(wake_.get(), &one, sizeof(one));
  thread.join();
}

absl::StatusOr<std::unique_ptr<ProcessEngine>> ProcessEngine::Create(ProcessEngineOptions options) {
  const TransferLimits limits = options.limits;
  auto link = std::make_unique<Link>(std::move(options));
  std::promise<absl::Status> promise;
  std::future<absl::Status> opened = promise.get_future();
  link->thread = std::thread(
      [state = link.get(), moved = std::move(promise)]() mutable { state->Run(std::move(moved)); });
  const absl::Status status = opened.get();
  if (!status.ok()) {
    link->Stop();
    return status;
  }
  return std::unique_ptr<ProcessEngine>(new ProcessEngine(std::move(link), limits));
}

ProcessEngine::ProcessEngine(std::unique_ptr<Link> link, const TransferLimits& limits)
    : link_(std::move(link)), admission_(limits) {}

ProcessEngine::~ProcessEngine() {
  link_->Stop();
}

void ProcessEngine::AddMemory(std::span<std::byte> extent, int fd) {
  link_->Call([&](ProcessLink& link) { link.AddMemory(extent, fd); });
}

pid_t ProcessEngine::process() const {
  const std::lock_guard lock(link_->mutex);
  return link_->process;
}

// Written before Create returned, and never changed.
const std::string& ProcessEngine::address() const {
  const std::lock_guard lock(link_->mutex);
  return link_->link.address();
}

bool ProcessEngine::Start(Offer offer) {
  if (!admission_.Admit(offer)) return false;
  link_->Call([&](ProcessLink& link) { link.Start(offer); });
  return true;
}

void ProcessEngine::Revoke(GrantId grant) {
  if (!admission_.MayRevoke(grant)) return;
  link_->Call([&](ProcessLink& link) { link.Revoke(grant, Now()); });
}

void ProcessEngine::Start(Pull pull) {
  if (!admission_.Admit(pull)) {
    if (link_->options.notify) link_->options.notify();
    return;
  }
  link_->Call([&](ProcessLink& link) { link.Start(std::move(pull)); });
}

void ProcessEngine::Cancel(uint64_t pull) {
  if (!admission_.MayCancel(pull)) return;
  link_->Call([&](ProcessLink& link) { link.Cancel(pull); });
}

void ProcessEngine::TakeEvents(std::vector<TransferEvent>* events) {
  std::vector<TransferEvent> taken;
  {
    const std::lock_guard lock(link_->mutex);
    taken.swap(link_->link.events());
  }
  admission_.Take(&taken, events);
}

TransferCounters ProcessEngine::counters() const {
  const std::lock_guard lock(link_->mutex);
  return admission_.Added(link_->link.counters());
}

}  // namespace pando
