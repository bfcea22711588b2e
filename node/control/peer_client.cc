#include "node/control/peer_client.h"

#include <future>
#include <utility>

#include "node/control/peer_client_calls.h"
#include "node/control/rpc_thread.h"

namespace pando::control {

struct PeerClient::Impl {
  explicit Impl(std::function<void(Input)> deliver)
      : thread(std::make_unique<grpc::CompletionQueue>()),
        calls(std::move(deliver), thread.queue()) {}

  RpcThread thread;
  PeerClientCalls calls;  // on the thread
};

PeerClient::PeerClient(std::function<void(Input)> deliver)
    : impl_(std::make_unique<Impl>(std::move(deliver))) {}

PeerClient::~PeerClient() {
  std::promise<void> stopped;
  impl_->thread.Post([&] { impl_->calls.Stop([&] { stopped.set_value(); }); });
  stopped.get_future().wait();
  impl_->thread.Close();
}

void PeerClient::SetPeers(std::vector<PeersChanged::Peer> peers) {
  impl_->thread.Post([calls = &impl_->calls, set = std::move(peers)] { calls->SetPeers(set); });
}

void PeerClient::Take(AskPeer ask) {
  impl_->thread.Post([calls = &impl_->calls, taken = std::move(ask)] { calls->Ask(taken); });
}

void PeerClient::Take(OpenFeed open) {
  impl_->thread.Post([calls = &impl_->calls, taken = open] { calls->Open(taken); });
}

void PeerClient::Take(CloseFeed close) {
  impl_->thread.Post([calls = &impl_->calls, stream = close.stream] { calls->Close(stream); });
}

void PeerClient::FeedStepped(uint64_t stream) {
  impl_->thread.Post([calls = &impl_->calls, stream] { calls->Stepped(stream); });
}

}  // namespace pando::control
