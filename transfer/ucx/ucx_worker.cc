#include "transfer/ucx/ucx_worker.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "radix/base/check.h"
#include "transfer/ucx/listen_address.h"
#include "transfer/ucx/ucx_defaults.h"

namespace pando::transfer {
namespace {

constexpr unsigned kAskMessage = wire::kAskId;
constexpr unsigned kPagesMessage = wire::kPagesId;
constexpr unsigned kRefusalMessage = wire::kRefusalId;
constexpr size_t kRendezvousFromTcp = (2u << 20) + 1;
constexpr size_t kRendezvousFromElsewhere = 64u << 10;  // no copy where hardware moves the bytes
constexpr Nanos kTellEvery = 5'000'000;
constexpr Nanos kCloseTimeout = 5'000'000'000;

absl::Status Failed(const char* what, ucs_status_t status) {
  return absl::UnavailableError(absl::StrCat(what, ": ", ucs_status_string(status)));
}

}  // namespace

Nanos MonotonicNow() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

std::optional<Nanos> Earlier(std::optional<Nanos> a, std::optional<Nanos> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

UcxWorker::UcxWorker(const UcxEngineOptions& options)
    : options_(options), pulls_(options.limits, &out_, kTellEvery) {}

UcxWorker::~UcxWorker() {
  if (listener_ != nullptr) ucp_listener_destroy(listener_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  for (const auto& [start, memory] : memory_) ucp_mem_unmap(context_, memory.second);
  if (context_ != nullptr) ucp_cleanup(context_);
  for (Operation* operation : free_operations_) delete operation;
}

absl::Status UcxWorker::Open() {
  absl::Status status = OpenContext();
  if (status.ok()) status = OpenListener();
  return status;
}

absl::Status UcxWorker::OpenContext() {
  SetUcxDefaults();
  // UCX listens on a port of its own on every device that it uses: not beyond loopback unless
  // asked.
  const std::optional<SocketAddress> listen = ParseAddress(options_.listen);
  if (listen && IsLoopback(*listen)) ::setenv("UCX_NET_DEVICES", "lo", 0);
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return Failed("UCX's configuration", status);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;  // no RMA: nobody reaches into our memory
  status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (status != UCS_OK) return Failed("UCX context", status);
  rendezvous_from_ = options_.rendezvous_from != 0 ? options_.rendezvous_from : RendezvousFrom();

  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  status = ucp_worker_create(context_, &worker_params, &worker_);
  if (status != UCS_OK) return Failed("UCX worker", status);
  status = ucp_worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) return Failed("UCX event descriptor", status);

  absl::Status set = SetHandler(kAskMessage, &OnAsk);
  if (set.ok()) set = SetHandler(kPagesMessage, &OnPages);
  if (set.ok()) set = SetHandler(kRefusalMessage, &OnRefusal);
  return set;
}

// UCX 1.13 tells the names of transports only in print.
size_t UcxWorker::RendezvousFrom() const {
  char* text = nullptr;
  size_t size = 0;
  FILE* const out = open_memstream(&text, &size);
  if (out == nullptr) return kRendezvousFromElsewhere;
  ucp_context_print_info(context_, out);
  std::fclose(out);
  const std::string info(text, size);
  std::free(text);
  for (const char* const rdma : {"rc_", "dc_", "ud_"}) {
    if (info.find(rdma) != std::string::npos) return kRendezvousFromElsewhere;
  }
  return kRendezvousFromTcp;
}

absl::Status UcxWorker::SetHandler(unsigned id, ucp_am_recv_callback_t handler) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.cb = handler;
  params.arg = this;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &params);
  return status == UCS_OK ? absl::OkStatus() : Failed("UCX message handler", status);
}

absl::Status UcxWorker::OpenListener() {
  const std::optional<SocketAddress> address = ParseAddress(options_.listen);
  if (!address) {
    return absl::InvalidArgumentError(
        absl::StrCat("data address \"", options_.listen, "\" is not a numeric ADDRESS:PORT"));
  }
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&address->storage), address->size};
  params.conn_handler = {.cb = &OnConnectionRequest, .arg = this};
  ucs_status_t status = ucp_listener_create(worker_, &params, &listener_);
  if (status != UCS_OK) return Failed(("listening on " + options_.listen).c_str(), status);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucp_listener_query(listener_, &attributes);
  if (status != UCS_OK) return Failed("the listener's address", status);
  address_ = FormatAddress(attributes.sockaddr);
  return absl::OkStatus();
}

void UcxWorker::AddMemory(std::span<std::byte> extent) {
  if (HandleOf(extent.data(), extent.size()) != nullptr) return;
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = extent.data();
  params.length = extent.size();
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  ucp_mem_h handle = nullptr;
  if (ucp_mem_map(context_, &params, &handle) != UCS_OK) {
    ++out_.counters.registrations_failed;  // then without, each time
    return;
  }
  const auto [it, fresh] = memory_.try_emplace(extent.data(), extent.size(), handle);
  PANDO_CHECK(fresh) << "an extent is added again with another size";
}

ucp_mem_h UcxWorker::HandleOf(const void* start, size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(start);
  auto it = memory_.upper_bound(first);
  if (it == memory_.begin()) return nullptr;
  --it;
  return first + bytes <= it->first + it->second.first ? it->second.second : nullptr;
}

void UcxWorker::Start(Pull pull) {
  const uint64_t wire = static_cast<uint64_t>(random_()) << 32 | random_();
  Connection* const connection = ConnectionTo(pull.address);
  pulls_.Start(std::move(pull), wire, connection == nullptr ? 0 : connection->id,
               connection != nullptr && connection->heard);
  if (connection == nullptr) pulls_.End(wire, PullStatus::kUnreachable);
}

bool UcxWorker::Progress() {
  return ucp_worker_progress(worker_) != 0;
}

bool UcxWorker::Arm() {
  return ucp_worker_arm(worker_) == UCS_OK;
}

std::optional<Nanos> UcxWorker::Turn() {
  const Nanos now = MonotonicNow();
  for (ucp_conn_request_h caller : std::exchange(callers_, {})) {
    if (accepted_ < options_.limits.connections) {
      Accept(caller);
    } else {
      ++out_.counters.connections_refused;
      ucp_listener_reject(listener_, caller);
    }
  }
  for (const Waiting& waiting : std::exchange(asks_, {})) Serve(waiting);
  pulls_.Expire(now);
  for (const auto& [id, connection] : connections_) {
    if (!connection->peer.empty() && !connection->failed) Pump(connection.get());
  }
  const std::optional<Nanos> stall = CloseFailedAndStalled();
  return Earlier(Earlier(stall, pulls_.NextDeadline()), pulls_.Flush(now));
}

void UcxWorker::CloseAll() {
  for (ucp_conn_request_h caller : std::exchange(callers_, {}))
    ucp_listener_reject(listener_, caller);
  asks_.clear();
  for (const auto& [id, connection] : connections_) connection->failed = true;
  const Nanos end = MonotonicNow() + kCloseTimeout;
  for (;;) {
    CloseFailedAndStalled();
    if (connections_.empty() || MonotonicNow() > end) return;
    while (Progress()) {
    }
  }
}

}  // namespace pando::transfer
