// pando-transfer: the process of a node's ProcessEngine. Started by pando-node, ends with it.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transfer/memory/host_slab.h"
#include "transfer/memory/unique_fd.h"
#include "transfer/process/child.h"
#include "transfer/process/extent_map.h"
#include "transfer/process/message_codec.h"
#include "transfer/process/message_socket.h"
#include "transfer/ucx/ucx_worker.h"

namespace {

using pando::Nanos;
using pando::UniqueFd;
using pando::transfer::Decode;
using pando::transfer::Encode;
using pando::transfer::MessageSocket;
using pando::transfer::UcxWorker;
namespace v1 = pando::v1;

constexpr int kExitFault = 1, kExitUse = 2, kExitFull = 3;
constexpr int kProgressMax = 64;  // then the socket has its turn
constexpr size_t kTouchBytes = 2u << 20;
constexpr Nanos kCountersEvery = 100'000'000;
constexpr Nanos kLookAtDescriptorsEvery = 5'000'000'000;

// One thread: turns of the worker and of the socket. Commands are read between the worker's
// progress and its turn, which serves what peers asked in that progress: so whoever was told of a
// grant finds it, though its offer came by another way (UcxWorker's invariant 3).
class Server {
 public:
  explicit Server(UniqueFd socket) : socket_(std::move(socket)) {}

  // Until the node has gone (0), or something is amiss.
  int Serve();

 private:
  bool Do(MessageSocket::Message message);
  bool Open(const v1::TransferOpen& open);
  bool AddExtent(uint32_t number, int fd);
  // When the counters are to be told, if they have changed and it is too early.
  std::optional<Nanos> Report();
  bool IsFull();
  void Touch();
  void Sleep(std::optional<Nanos> until) const;

  MessageSocket socket_;
  std::vector<pando::MappedExtent> mapped_;
  std::deque<std::span<std::byte>> untouched_;  // of extents: not in the page table yet
  pando::transfer::ExtentMap extents_;
  std::unique_ptr<UcxWorker> worker_;
  pando::TransferCounters told_;
  Nanos counters_due_ = 0;
  Nanos look_at_descriptors_ = 0;
};

int Server::Serve() {
  for (;;) {
    bool busy = false;
    for (int i = 0; worker_ != nullptr && i < kProgressMax && worker_->Progress(); ++i) busy = true;
    const bool there = socket_.Receive();
    for (MessageSocket::Message& message : socket_.Take()) {
      if (Do(std::move(message))) continue;
      socket_.Send();  // why
      return kExitFault;
    }
    std::optional<Nanos> until;
    if (worker_ != nullptr) {
      until = worker_->Turn();
      until = pando::transfer::Earlier(until, Report());
    }
    if (!socket_.Send() || !there) return 0;
    if (IsFull()) return kExitFull;
    until = pando::transfer::Earlier(until, look_at_descriptors_);
    if (busy) continue;
    if (!untouched_.empty()) {
      Touch();
    } else if (worker_ == nullptr || worker_->Arm()) {
      Sleep(until);
    }
  }
}

// Connections that never say what they want stay UCX's own, without a bound and without our hearing
// of them; when no descriptor is left it tries to accept for ever. A new process has none of them.
bool Server::IsFull() {
  const Nanos now = pando::transfer::MonotonicNow();
  if (now < look_at_descriptors_) return false;
  look_at_descriptors_ = now + kLookAtDescriptorsEvery;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const UniqueFd lowest_free(::fcntl(socket_.fd(), F_DUPFD_CLOEXEC, 0));
  const rlim_t full = limit.rlim_cur - limit.rlim_cur / 4;
  if (lowest_free.valid() && static_cast<rlim_t>(lowest_free.get()) < full) return false;
  std::fprintf(stderr,
               "pando-transfer: 3/4 of %llu descriptors are used: it ends, and with it all "
               "connections, most of which say nothing\n",
               static_cast<unsigned long long>(limit.rlim_cur));
  return true;
}

// A step of what the first transfers would otherwise wait for.
void Server::Touch() {
  std::span<std::byte>& rest = untouched_.front();
  const size_t step = std::min(rest.size(), kTouchBytes);
  pando::Prefault(rest.first(step));
  rest = rest.subspan(step);
  if (rest.empty()) untouched_.pop_front();
}

void Server::Sleep(std::optional<Nanos> until) const {
  int timeout_ms = -1;
  if (until) {
    const Nanos left = *until - pando::transfer::MonotonicNow();
    timeout_ms = static_cast<int>(std::clamp<Nanos>(left / 1'000'000 + 1, 0, 60'000));
  }
  const short wanted = socket_.wants_write() ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> fds{
      {{socket_.fd(), wanted, 0}, {worker_ == nullptr ? -1 : worker_->event_fd(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), timeout_ms);
}

bool Server::Do(MessageSocket::Message message) {
  v1::TransferCommand command;
  if (!command.ParseFromString(message.bytes)) return false;
  if (command.has_open()) return worker_ == nullptr && Open(command.open());
  if (worker_ == nullptr) return false;
  switch (command.command_case()) {
    case v1::TransferCommand::kAddExtent:
      return AddExtent(command.add_extent(), message.fd.get());
    case v1::TransferCommand::kOffer: {
      std::optional<pando::Offer> offer = Decode(command.offer(), extents_);
      if (!offer) return false;
      worker_->Start(*std::move(offer));
      return true;
    }
    case v1::TransferCommand::kRevoke:
      worker_->Revoke(Decode(command.revoke()));
      return true;
    case v1::TransferCommand::kPull: {
      std::optional<pando::Pull> pull = Decode(command.pull(), extents_);
      if (!pull) return false;
      worker_->Start(*std::move(pull));
      return true;
    }
    case v1::TransferCommand::kCancel:
      worker_->Cancel(command.cancel());
      return true;
    default:
      return false;
  }
}

bool Server::Open(const v1::TransferOpen& open) {
  v1::TransferReport report;
  v1::TransferOpened& opened = *report.mutable_opened();
  if (open.version() != pando::transfer::kProcessVersion) {
    opened.set_error("pando-transfer speaks version " +
                     std::to_string(pando::transfer::kProcessVersion) + ", pando-node version " +
                     std::to_string(open.version()) + ": install both from one build");
  } else {
    pando::UcxEngineOptions options;
    options.listen = open.listen();
    options.limits = pando::transfer::LimitsOf(open);
    options.rendezvous_from = open.rendezvous_from();
    auto worker = std::make_unique<UcxWorker>(options);
    const absl::Status status = worker->Open();
    if (status.ok()) {
      worker_ = std::move(worker);
      opened.set_address(worker_->address());
    } else {
      opened.set_error(std::string(status.message()));
      opened.set_invalid(status.code() == absl::StatusCode::kInvalidArgument);
    }
  }
  socket_.Put(report);
  return worker_ != nullptr;
}

bool Server::AddExtent(uint32_t number, int fd) {
  if (number != extents_.size()) return false;
  absl::StatusOr<pando::MappedExtent> mapped = pando::MappedExtent::Map(fd);
  if (!mapped.ok()) {
    std::fprintf(stderr, "pando-transfer: %s\n", std::string(mapped.status().message()).c_str());
    return false;
  }
  mapped_.push_back(*std::move(mapped));
  const std::span<std::byte> bytes = mapped_.back().bytes();
  untouched_.push_back(bytes);
  extents_.Add(bytes);
  worker_->AddMemory(bytes);
  return true;
}

std::optional<Nanos> Server::Report() {
  pando::transfer::Outbox& out = worker_->outbox();
  const Nanos now = pando::transfer::MonotonicNow();
  const bool changed = out.counters != told_;
  if (out.events.empty() && (!changed || now < counters_due_)) {
    return changed ? std::optional(counters_due_) : std::nullopt;
  }
  v1::TransferReport report;
  for (const pando::TransferEvent& event : out.events) Encode(event, report.add_events());
  out.events.clear();
  if (changed) Encode(out.counters, &report);
  told_ = out.counters;
  counters_due_ = now + kCountersEvery;
  socket_.Put(report);
  return std::nullopt;
}

}  // namespace

int main() {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (::getpeername(pando::transfer::kChildSocket, reinterpret_cast<sockaddr*>(&peer), &size) !=
          0 ||
      peer.ss_family != AF_UNIX) {
    std::fputs("pando-transfer moves pages for pando-node, which starts it by itself\n", stderr);
    return kExitUse;
  }
  // It dies when a peer sends what UCX does not understand: of that no dump of all pages is wanted.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(SIGPIPE, SIG_IGN);
  // With the thread of the node that started it, also while this process is stopped.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Server server{UniqueFd(pando::transfer::kChildSocket)};
  // Connections end with the process, at once, so that the port is free for the next one.
  std::_Exit(server.Serve());
}
