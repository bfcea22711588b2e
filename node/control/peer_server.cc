#include "node/control/peer_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <future>
#include <utility>

#include "node/control/peer_acceptor.h"
#include "node/control/peer_server_calls.h"
#include "node/control/peer_transport.h"
#include "node/control/rpc_thread.h"

namespace pando::control {
namespace {

constexpr std::chrono::milliseconds kShutdownTimeout{300};
constexpr int kIdleMillis = 60'000;         // without a call: a peer says hello, and then listens
constexpr size_t kMemoryBytes = 512 << 20;  // of messages that come and go, all callers together

void Configure(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(limits::kPeerMessageBytes);
  builder->SetMaxSendMessageSize(limits::kPeerMessageBytes);
  builder->SetResourceQuota(grpc::ResourceQuota("peers").Resize(kMemoryBytes));
  // A few bytes could become many.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMillis);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kCallsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kKeepaliveMillis / 2);
}

}  // namespace

struct PeerServer::Impl {
  explicit Impl(Options given) : options(std::move(given)) {}

  // `work` on the server's thread.
  void Post(std::function<void()> work) { thread->Post(std::move(work)); }

  const Options options;
  std::string address;
  std::unique_ptr<PeerServerCalls> calls;
  std::unique_ptr<RpcThread> thread;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<PeerAcceptor> acceptor;
};

absl::StatusOr<std::unique_ptr<PeerServer>> PeerServer::Start(Options options) {
  const auto refused = [&] {
    return absl::FailedPreconditionError("peer port: cannot listen on " + options.listen +
                                         "; is it in use, and an address of this host?");
  };
  std::optional<PeerAcceptor::Listening> listening = PeerAcceptor::Listen(options.listen);
  if (!listening) return refused();
  auto impl = std::make_unique<Impl>(options);
  grpc::ServerBuilder builder;
  Configure(&builder);
  std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  impl->calls = std::make_unique<PeerServerCalls>(impl->options, queue.get());
  builder.RegisterAsyncGenericService(impl->calls->service());
  impl->server = builder.BuildAndStart();
  impl->thread = std::make_unique<RpcThread>(std::move(queue));
  if (impl->server == nullptr) return refused();
  impl->address = listening->address;
  impl->acceptor = std::make_unique<PeerAcceptor>(*std::move(listening), impl->server.get(),
                                                  impl->options.connections_max);
  impl->Post([calls = impl->calls.get()] { calls->AcceptNext(); });
  return std::unique_ptr<PeerServer>(new PeerServer(std::move(impl)));
}

PeerServer::PeerServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PeerServer::~PeerServer() {
  impl_->acceptor.reset();
  std::promise<void> stopped;
  impl_->Post([&] { impl_->calls->Stop([&] { stopped.set_value(); }); });
  impl_->server->Shutdown(std::chrono::system_clock::now() + kShutdownTimeout);
  stopped.get_future().wait();
  impl_->thread->Close();
}

const std::string& PeerServer::address() const {
  return impl_->address;
}

void PeerServer::Take(AnswerPeer answer) {
  impl_->Post([calls = impl_->calls.get(), taken = std::move(answer)] { calls->Answer(taken); });
}

void PeerServer::Take(SendFeed send) {
  impl_->Post([calls = impl_->calls.get(), taken = std::move(send)] { calls->Send(taken); });
}

void PeerServer::Take(EndFeed end) {
  impl_->Post([calls = impl_->calls.get(), taken = std::move(end)] { calls->End(taken); });
}

PeerServerCounters PeerServer::counters() const {
  const PeerServerCalls::Counters& now = impl_->calls->counters();
  return {now.calls,        now.feeds,
          now.refused_busy, now.refused_malformed,
          now.gone,         impl_->acceptor->refused()};
}

}  // namespace pando::control
