#include "node/runtime/node.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "node/control/random_number.h"
#include "node/local/clock.h"
#include "node/runtime/metrics.h"
#include "node/runtime/room.h"
#include "node/runtime/step_names.h"
#include "radix/base/check.h"

#ifndef PANDO_VERSION
#define PANDO_VERSION "unknown"
#endif

namespace pando::runtime {
namespace {

constexpr std::chrono::milliseconds kOwnerTimeout{2000};
constexpr std::chrono::hours kPopulateTimeout{24};
constexpr Nanos kNanosPerMilli = 1'000'000;
constexpr int kExitFailed = 1;

// Where ids of this life begin: those of another life lie elsewhere, and all of them below 2^64.
uint64_t FirstId() {
  return (control::RandomNumber() >> 1) + 1;
}

NodeCore::Options CoreOptions(const Options& options) {
  NodeCore::Options core;
  core.cache.key_secret = options.key_secret;
  core.cache.space_share = options.space_share;
  core.slab_bytes = options.host_slab;
  core.first_claim = ClaimId(FirstId());
  return core;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Create(Options options, Log* log, int signals,
                                                   StepListener* steps) {
  std::unique_ptr<Node> node(new Node(std::move(options), log, signals, steps));
  if (absl::Status status = node->Start(); !status.ok()) return status;
  return node;
}

Node::Node(Options options, Log* log, int signals, StepListener* steps)
    : options_(std::move(options)),
      log_(log),
      steps_(steps),
      facts_{BootId(control::RandomNumber()), options_.name, PANDO_VERSION, local::Now(),
             options_.host_slab},
      signals_(signals),
      core_(CoreOptions(options_), steps) {
  signal_watch_ = loop_.Watch(signals_, EPOLLIN, [this](uint32_t) { OnSignal(); });
  PANDO_CHECK(signal_watch_ != local::EventLoop::WatchId::kNone) << "no room to watch signals";
}

Node::~Node() {
  End();
}

void Node::End() {
  if (std::exchange(ended_, true)) return;
  // Whoever waits for the owner thread is told first; then the threads end, then what they used.
  loop_.Close();
  populator_.reset();
  http_.reset();
  admin_listener_.reset();
  admin_.reset();
  cluster_.reset();
  server_.reset();
  loop_.Unwatch(signal_watch_, signals_);
}

absl::Status Node::Start() {
  if (absl::Status memory = CheckMemory(options_.host_slab); !memory.ok()) return memory;
  const absl::StatusOr<uint32_t> sessions_max = SessionsMax(options_, log_);
  if (!sessions_max.ok()) return sessions_max.status();
  absl::StatusOr<local::Listener> listener = local::Listener::Bind(options_.socket);
  if (!listener.ok()) return listener.status();
  local::SessionServer::Options server;
  server.boot_id = facts_.boot_id;
  server.sessions_max = *sessions_max;
  server.first_session = SessionId(FirstId());
  server_ = std::make_unique<local::SessionServer>(
      server, &loop_, &core_, *std::move(listener),
      [log = log_](const LogLine& line) { log->Write(line); }, steps_);
  for (const auto start : {&Node::ServeAdmin, &Node::ServeHttp, &Node::JoinCluster}) {
    if (absl::Status status = (this->*start)(); !status.ok()) return status;
  }
  Reached(step::kListening);
  Populate();
  return absl::OkStatus();
}

absl::Status Node::ServeAdmin() {
  absl::StatusOr<local::Listener> listener = local::Listener::Bind(options_.admin);
  if (!listener.ok()) return listener.status();
  control::AdminServer::Source source;
  source.run_on_owner = [this](const std::function<void()>& work,
                               std::chrono::milliseconds timeout) {
    return loop_.RunAndWait(work, timeout);
  };
  source.core = &core_;
  source.ready = [this] { return ready_.load(); };
  source.facts = facts_;
  absl::StatusOr<std::unique_ptr<control::AdminServer>> admin =
      control::AdminServer::Start(std::move(source));
  if (!admin.ok()) return admin.status();
  admin_ = *std::move(admin);
  admin_listener_ =
      std::make_unique<AdminListener>(&loop_, *std::move(listener), admin_.get(), log_);
  return absl::OkStatus();
}

absl::Status Node::ServeHttp() {
  if (options_.metrics_host.empty()) return absl::OkStatus();
  HttpServer::Source source;
  source.metrics = [this] { return Metrics(); };
  source.healthy = [this] { return OnOwner([] {}); };
  source.ready = [this] { return ready_.load(); };
  absl::StatusOr<std::unique_ptr<HttpServer>> http =
      HttpServer::Start(options_.metrics_host, options_.metrics_port, std::move(source));
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  return absl::OkStatus();
}

absl::Status Node::JoinCluster() {
  if (options_.cluster.peer_listen.empty()) return absl::OkStatus();
  Cluster::Owner owner;
  owner.loop = &loop_;
  owner.deliver = [this](Input input) { server_->Deliver(std::move(input)); };
  owner.log = [this](const LogLine& line) { log_->Write(line); };
  absl::StatusOr<std::unique_ptr<Cluster>> cluster =
      Cluster::Create(options_.cluster, std::move(owner));
  if (!cluster.ok()) return cluster.status();
  cluster_ = *std::move(cluster);
  server_->SetOtherOutputs([this](Output&& output) { cluster_->CarryOut(std::move(output)); });
  cluster_->Begin(options_.name, facts_.boot_id);
  return absl::OkStatus();
}

void Node::Populate() {
  SlabPopulator::Sink sink;
  sink.extent = [this](HostExtent extent) {
    Reached(step::kExtentCreated);
    // The owner takes it in before the next one is made. False only when the node ends.
    std::span<std::byte> mapping;
    const auto add = [&] { mapping = AddExtent(std::move(extent)); };
    if (!loop_.RunAndWait(add, kPopulateTimeout)) return false;
    Prefault(mapping);
    return true;
  };
  sink.done = [this](uint64_t made, const absl::Status& status) {
    loop_.Post([this, made, status] { SlabDone(made, status); });
  };
  const uint64_t extents = options_.host_slab.value() / kExtentBytes.value();
  populator_ = std::make_unique<SlabPopulator>(extents, std::move(sink));
}

std::span<std::byte> Node::AddExtent(HostExtent extent) {
  std::span<std::byte> mapping;
  const ExtentId id(static_cast<uint32_t>(extents_.size()));
  if (cluster_ != nullptr) {
    const absl::StatusOr<std::span<std::byte>> added = cluster_->AddExtent(extent);
    if (!added.ok()) {
      log_->Write(LogLine::Level::kError, "slab.not_mapped", {{"why", added.status().ToString()}});
      return {};
    }
    mapping = *added;
  }
  extents_.push_back(std::move(extent));
  server_->AddExtent(id, extents_.back().fd());
  server_->Deliver(ExtentReady{id});
  return mapping;
}

void Node::SlabDone(uint64_t made, const absl::Status& status) {
  if (!status.ok()) {
    log_->Write(made > 0 ? LogLine::Level::kWarning : LogLine::Level::kError, "slab.short",
                {{"extents", std::to_string(made)},
                 {"wanted", std::to_string(options_.host_slab.value() / kExtentBytes.value())},
                 {"why", std::string(status.message())}});
  }
  if (made == 0) {
    exit_code_ = kExitFailed;
    Stop("no memory for a single extent");
    return;
  }
  if (!draining_) SayReady();
}

void Node::SayReady() {
  ready_ = true;
  const std::string boot_id = fmt::format("{:016x}", facts_.boot_id.value());
  const std::string slab = std::to_string(extents_.size() * kExtentBytes.value());
  const std::string metrics =
      http_ == nullptr ? "off" : options_.metrics_host + ":" + std::to_string(http_->port());
  std::string cluster;
  if (cluster_ != nullptr) cluster = " peer=" + cluster_->peer_address();
  if (cluster_ != nullptr && !cluster_->data_address().empty()) {
    cluster += " data=" + cluster_->data_address();
  }
  std::printf("pando-node ready name=%s socket=%s admin=%s metrics=%s boot_id=%s slab=%s%s\n",
              options_.name.c_str(), options_.socket.c_str(), options_.admin.c_str(),
              metrics.c_str(), boot_id.c_str(), slab.c_str(), cluster.c_str());
  std::fflush(stdout);
  log_->Write(LogLine::Level::kInfo, "node.ready",
              {{"boot_id", boot_id},
               {"extents", std::to_string(extents_.size())},
               {"slab_bytes", slab},
               {"metrics", metrics}});
  Reached(step::kReady);
}

int Node::Run() {
  loop_.Run();
  return exit_code_;
}

void Node::OnSignal() {
  uint64_t count = 0;
  if (::read(signals_, &count, sizeof(count)) != static_cast<ssize_t>(sizeof(count))) return;
  const bool another = draining_ || count > 1;
  if (!draining_) Drain();
  if (another) Stop("another signal");
}

void Node::Drain() {
  draining_ = true;
  ready_ = false;
  Reached(step::kDrainRequested);
  log_->Write(LogLine::Level::kInfo, "node.draining",
              {{"timeout_ms", std::to_string(options_.drain_timeout_ms)}});
  server_->StopAccepting();
  server_->Deliver(DrainRequested{});
  loop_.At(local::Now() + options_.drain_timeout_ms * kNanosPerMilli,
           [this] { Stop("the drain's timeout"); });
  server_->SetAfterTurn([this] { StopIfDrained(); });
}

void Node::StopIfDrained() {
  const CoreStatus status = core_.status();
  if (status.leases + status.reservations + status.holds == 0) Stop("all claims have ended");
}

void Node::Stop(const char* why) {
  if (stopped_) return;
  stopped_ = true;
  ready_ = false;
  Reached(step::kDrainEnded);
  log_->Write(LogLine::Level::kInfo, "node.stopping", {{"why", why}});
  loop_.Stop();
}

bool Node::OnOwner(const std::function<void()>& work) {
  return loop_.RunAndWait(work, kOwnerTimeout);
}

std::optional<std::string> Node::Metrics() {
  MetricsInput input;
  const bool read = OnOwner([&] {
    input.core = core_.status(local::Now());
    if (cluster_ != nullptr) input.wire = cluster_->wire_counters();
  });
  if (!read) return std::nullopt;
  input.facts = facts_;
  input.process = control::ReadProcessFacts();
  input.ready = ready_;
  return MetricsText(input);
}

}  // namespace pando::runtime
