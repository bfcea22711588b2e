#include "node/control/admin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <time.h>

#include <utility>

#include "node/control/process_facts.h"
#include "node/control/status_message.h"
#include "pando/v1/admin.grpc.pb.h"

namespace pando::control {
namespace {

constexpr std::chrono::milliseconds kOwnerTimeout{2000};
constexpr std::chrono::milliseconds kShutdownTimeout{500};
constexpr int kPollersMax = 2;
constexpr int kThreadsMax = 4;
constexpr uint64_t kRunsDefault = 1000;
constexpr uint64_t kRunsMax = 100'000;

Nanos MonotonicNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanos>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

uint64_t MillisSince(Nanos start) {
  return static_cast<uint64_t>((MonotonicNow() - start) / 1'000'000);
}

class Service final : public v1::Admin::Service {
 public:
  explicit Service(AdminServer::Source source) : source_(std::move(source)) {}

  grpc::Status GetStatus(grpc::ServerContext* /*context*/, const v1::GetStatusRequest* /*request*/,
                         v1::Status* response) override {
    CoreStatus status;
    if (!OnOwner([&] { status = source_.core->status(MonotonicNow()); })) return Busy();
    WriteStatus(status, response);
    const NodeFacts& facts = source_.facts;
    response->set_boot_id(facts.boot_id.value());
    response->set_name(facts.name);
    response->set_version(facts.version);
    response->set_uptime_ms(MillisSince(facts.started));
    response->set_ready(source_.ready());
    response->set_slab_bytes(facts.slab.value());
    const ProcessFacts process = ReadProcessFacts();
    if (process.fds) response->set_fds(*process.fds);
    response->set_threads(process.threads);
    return grpc::Status::OK;
  }

  grpc::Status ListRuns(grpc::ServerContext* /*context*/, const v1::ListRunsRequest* request,
                        v1::ListRunsResponse* response) override {
    if (request->limit() > kRunsMax) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              "limit: found " + std::to_string(request->limit()) + ", at most " +
                  std::to_string(kRunsMax) + " are allowed"};
    }
    const uint64_t limit = request->limit() == 0 ? kRunsDefault : request->limit();
    uint32_t spaces = 0;
    const auto read = [&] {
      const PrefixCache& cache = source_.core->cache();
      spaces = cache.spaces();
      if (request->space() >= spaces) return;
      cache.VisitRuns(SpaceId(request->space()), limit, [&](const RunInfo& run) {
        v1::Run* out = response->add_runs();
        WriteRun(run, out);
        if (request->peers() && run.told_key) {
          WriteHolders(source_.core->PeersHolding(*run.told_key), out);
        }
      });
      response->set_truncated(cache.stats(SpaceId(request->space())).runs >
                              static_cast<uint64_t>(response->runs_size()));
    };
    if (!OnOwner(read)) return Busy();
    if (request->space() < spaces) return grpc::Status::OK;
    return {grpc::StatusCode::NOT_FOUND, "space: found " + std::to_string(request->space()) +
                                             ", this node has " + std::to_string(spaces) +
                                             ", counted from 0"};
  }

  grpc::Status SelfCheck(grpc::ServerContext* /*context*/, const v1::SelfCheckRequest* /*request*/,
                         v1::SelfCheckResponse* response) override {
    if (!OnOwner([&] { response->set_broken(source_.core->SelfCheck()); })) return Busy();
    return grpc::Status::OK;
  }

 private:
  bool OnOwner(const std::function<void()>& work) {
    return source_.run_on_owner(work, kOwnerTimeout);
  }
  static grpc::Status Busy() {
    return {grpc::StatusCode::UNAVAILABLE, "the node did not come to it in " +
                                               std::to_string(kOwnerTimeout.count()) +
                                               " ms, or is stopping; try again"};
  }

  const AdminServer::Source source_;
};

}  // namespace

struct AdminServer::Impl {
  explicit Impl(Source source) : service(std::move(source)) {}
  Service service;
  std::unique_ptr<grpc::Server> server;
};

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(Source source) {
  auto impl = std::make_unique<Impl>(std::move(source));
  grpc::ServerBuilder builder;
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, kPollersMax);
  builder.SetResourceQuota(grpc::ResourceQuota("admin").SetMaxThreads(kThreadsMax));
  builder.RegisterService(&impl->service);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr) {
    return absl::FailedPreconditionError("the admin server: gRPC could not start it");
  }
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(impl)));
}

void AdminServer::Serve(int socket) {
  grpc::AddInsecureChannelFromFd(impl_->server.get(), socket);
}

AdminServer::AdminServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AdminServer::~AdminServer() {
  impl_->server->Shutdown(std::chrono::system_clock::now() + kShutdownTimeout);
  impl_->server->Wait();
}

}  // namespace pando::control
