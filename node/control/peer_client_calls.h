// The calls and feeds of a PeerClient, from their start to their end. Thread: the client's
// RpcThread only.
#ifndef PANDO_NODE_CONTROL_PEER_CLIENT_CALLS_H_
#define PANDO_NODE_CONTROL_PEER_CLIENT_CALLS_H_

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/control/peer_codec.h"
#include "node/control/rpc_thread.h"
#include "node/core/node_core.h"

namespace pando::control {

class PeerClientCalls {
 public:
  PeerClientCalls(std::function<void(Input)> deliver, grpc::CompletionQueue* queue)
      : deliver_(std::move(deliver)), queue_(queue) {}

  void SetPeers(const std::vector<PeersChanged::Peer>& peers);
  void Ask(const AskPeer& ask);
  void Open(const OpenFeed& open);
  void Close(uint64_t stream);
  void Stepped(uint64_t stream);
  // Ends feeds at once, calls after a moment, and then says `stopped`.
  void Stop(std::function<void()> stopped);

 private:
  struct Link {  // to one peer
    std::string address;
    std::unique_ptr<grpc::GenericStub> stub;
    uint32_t calls = 0;
  };
  struct Call {
    uint64_t id = 0;
    PeerId peer;
    PeerCall call = PeerCall::kHello;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer answer;
    grpc::Status status;
    RpcThread::Tag finished;
  };
  struct Feed {
    uint64_t stream = 0;
    PeerId peer;
    grpc::ByteBuffer request;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> rpc;
    grpc::ByteBuffer in;
    grpc::Status status;
    RpcThread::Tag started, wrote, read, finished;
    bool closed = false;    // by the owner: nothing of it is delivered any more
    bool at_owner = false;  // its last message has not been stepped with
    bool finishing = false;
    uint32_t operations = 0;  // under way
  };

  std::unique_ptr<Link> MakeLink(const std::string& address) const;
  void Refuse(const AskPeer& ask, std::string why);
  void Finished(Call* call);

  void Started(Feed* feed, bool ok);
  void Read(Feed* feed, bool ok);
  void ReadNext(Feed* feed);
  void Finish(Feed* feed);
  void Ended(Feed* feed);
  void Over(Feed* feed);
  void StopIfOver();

  const std::function<void(Input)> deliver_;
  grpc::CompletionQueue* const queue_;
  std::map<PeerId, std::unique_ptr<Link>> links_;
  std::map<uint64_t, std::unique_ptr<Call>> calls_;  // by id
  std::map<uint64_t, std::unique_ptr<Feed>> feeds_;  // by stream
  std::function<void()> stopped_;                    // not empty: stopping
  grpc::Alarm patience_;
  bool waiting_ = false;  // for patience_
  RpcThread::Tag patience_over_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_CLIENT_CALLS_H_
