#include "transfer/ucx/ucx_engine.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <thread>

#include "transfer/memory/unique_fd.h"
#include "transfer/ucx/ucx_worker.h"

namespace pando {

struct UcxEngine::Shared {
  explicit Shared(const UcxEngineOptions& given) : options(given) {}

  void Run(std::promise<absl::Status>* opened);
  void RunCommands(transfer::UcxWorker& worker);
  void Publish(transfer::UcxWorker& worker);
  void Sleep(transfer::UcxWorker& worker, std::optional<Nanos> until);

  const UcxEngineOptions options;
  std::string address;
  UniqueFd wake{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::thread thread;

  std::mutex mutex;  // guards the rest
  std::vector<std::function<void(transfer::UcxWorker&)>> commands;
  bool stop = false;
  std::vector<TransferEvent> events;
  TransferCounters counters;
};

// ---- The progress thread

void UcxEngine::Shared::Run(std::promise<absl::Status>* opened) {
  transfer::UcxWorker worker(options);
  const absl::Status status = worker.Open();
  address = worker.address();
  opened->set_value(status);
  if (!status.ok()) return;
  for (;;) {
    constexpr int kProgressMax = 64;  // then the others have their turn
    bool busy = false;
    for (int i = 0; i < kProgressMax && worker.Progress(); ++i) busy = true;
    RunCommands(worker);
    const std::optional<Nanos> until = worker.Turn();
    Publish(worker);
    {
      const std::lock_guard lock(mutex);
      if (stop) break;
      if (!commands.empty()) continue;
    }
    if (!busy && worker.Arm()) Sleep(worker, until);
  }
  worker.CloseAll();
}

void UcxEngine::Shared::RunCommands(transfer::UcxWorker& worker) {
  std::vector<std::function<void(transfer::UcxWorker&)>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(commands);
  }
  for (const auto& command : taken) command(worker);
}

void UcxEngine::Shared::Publish(transfer::UcxWorker& worker) {
  transfer::Outbox& out = worker.outbox();
  bool first = false;
  {
    const std::lock_guard lock(mutex);
    counters = out.counters;
    if (!out.events.empty()) {
      first = events.empty();
      std::move(out.events.begin(), out.events.end(), std::back_inserter(events));
      out.events.clear();
    }
  }
  if (first && options.notify) options.notify();
}

void UcxEngine::Shared::Sleep(transfer::UcxWorker& worker, std::optional<Nanos> until) {
  int timeout_ms = -1;
  if (until) {
    const Nanos left = *until - transfer::MonotonicNow();
    timeout_ms = static_cast<int>(std::clamp<Nanos>(left / 1'000'000 + 1, 0, 60'000));
  }
  std::array<pollfd, 2> fds{{{worker.event_fd(), POLLIN, 0}, {wake.get(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), timeout_ms);
  if (fds[1].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake.get(), &count, sizeof(count));
  }
}

// ---- The owner's thread

absl::StatusOr<std::unique_ptr<UcxEngine>> UcxEngine::Create(const UcxEngineOptions& options) {
  auto shared = std::make_unique<Shared>(options);
  std::promise<absl::Status> opened;
  shared->thread = std::thread([state = shared.get(), &opened] { state->Run(&opened); });
  const absl::Status status = opened.get_future().get();
  if (!status.ok()) {
    shared->thread.join();
    return status;
  }
  return std::unique_ptr<UcxEngine>(new UcxEngine(std::move(shared)));
}

UcxEngine::UcxEngine(std::unique_ptr<Shared> shared)
    : shared_(std::move(shared)), admission_(shared_->options.limits) {}

UcxEngine::~UcxEngine() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  Post({});
  shared_->thread.join();
}

void UcxEngine::Post(std::function<void(transfer::UcxWorker&)> command) {
  bool first = false;
  {
    const std::lock_guard lock(shared_->mutex);
    first = shared_->commands.empty();
    if (command) shared_->commands.push_back(std::move(command));
  }
  const uint64_t one = 1;
  if (first) [[maybe_unused]]
    const ssize_t put = write(shared_->wake.get(), &one, sizeof(one));
}

const std::string& UcxEngine::address() const {
  return shared_->address;
}

void UcxEngine::AddMemory(std::span<std::byte> extent) {
  Post([extent](transfer::UcxWorker& worker) { worker.AddMemory(extent); });
}

bool UcxEngine::Start(Offer offer) {
  if (!admission_.Admit(offer)) return false;
  Post([moved = std::move(offer)](transfer::UcxWorker& worker) mutable {
    worker.Start(std::move(moved));
  });
  return true;
}

void UcxEngine::Revoke(GrantId grant) {
  if (!admission_.MayRevoke(grant)) return;
  Post([grant](transfer::UcxWorker& worker) { worker.Revoke(grant); });
}

void UcxEngine::Start(Pull pull) {
  if (!admission_.Admit(pull)) {
    if (shared_->options.notify) shared_->options.notify();
    return;
  }
  Post([moved = std::move(pull)](transfer::UcxWorker& worker) mutable {
    worker.Start(std::move(moved));
  });
}

void UcxEngine::Cancel(uint64_t pull) {
  if (!admission_.MayCancel(pull)) return;
  Post([pull](transfer::UcxWorker& worker) { worker.Cancel(pull); });
}

void UcxEngine::TakeEvents(std::vector<TransferEvent>* events) {
  std::vector<TransferEvent> taken;
  {
    const std::lock_guard lock(shared_->mutex);
    taken.swap(shared_->events);
  }
  admission_.Take(&taken, events);
}

TransferCounters UcxEngine::counters() const {
  const std::lock_guard lock(shared_->mutex);
  return admission_.Added(shared_->counters);
}

}  // namespace pando
