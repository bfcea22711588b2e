// The calls of a PeerServer, from a caller's first byte to the last one sent to it.
//
//   accepted ─► read ─► decoded ─► delivered ─► answered, or fed ─► finished
//
// A call is forgotten when gRPC says that it is done and none of its operations is under way.
// Thread: the server's RpcThread only, but for `counters`.
#ifndef PANDO_NODE_CONTROL_PEER_SERVER_CALLS_H_
#define PANDO_NODE_CONTROL_PEER_SERVER_CALLS_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "node/control/peer_codec.h"
#include "node/control/peer_server.h"
#include "node/control/rpc_thread.h"

namespace pando::control {

class PeerServerCalls {
 public:
  // `queue` is the one of the server's thread.
  PeerServerCalls(const PeerServer::Options& options, grpc::ServerCompletionQueue* queue)
      : options_(options), queue_(queue) {}

  grpc::AsyncGenericService* service() { return &service_; }
  // Once the server has started.
  void AcceptNext();

  void Answer(const AnswerPeer& answer);
  void Send(const SendFeed& send);
  void End(const EndFeed& end);
  // Ends all, accepts none any more, and says `stopped` when none is left: no operation is started
  // from then on. The server has to be shut down meanwhile.
  void Stop(std::function<void()> stopped);

  struct Counters {
    std::atomic<uint64_t> calls = 0, feeds = 0, refused_busy = 0, refused_malformed = 0, gone = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  enum class State : uint8_t {
    kReading,   // nothing has been delivered of it
    kWaiting,   // for the owner
    kFinished,  // the last thing that it is sent is on its way or gone
  };
  struct Call {
    uint64_t id = 0;
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer in;
    RpcThread::Tag accepted, read, wrote, finished, done;
    State state = State::kReading;
    std::optional<PeerCall> call;  // none: a feed
    bool counted = false;          // among calls_ or feeds_
    bool is_done = false, writing = false;
    uint32_t operations = 0;               // under way
    std::optional<grpc::Status> end_with;  // when the message on its way has gone
  };

  void Accepted(Call* call, bool ok);
  // Empty, or why there is no room for it.
  std::optional<grpc::Status> Admit(Call* call);
  void Read(Call* call, bool ok);
  void ReadFeed(Call* call, std::string_view bytes);
  void ReadCall(Call* call, std::string_view bytes);
  void Wrote(Call* call, bool ok);
  void Done(Call* call);
  void Finish(Call* call, const grpc::Status& status);
  void FinishWith(Call* call, const PeerAnswerBody& answer);
  void RefuseMalformed(Call* call, const std::string& message);
  Call* Waiting(uint64_t id, bool feed);
  // An operation of it is over.
  void Over(Call* call);
  void ForgetIfOver(Call* call);
  void Forget(Call* call);

  const PeerServer::Options& options_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::AsyncGenericService service_;
  std::map<uint64_t, std::unique_ptr<Call>> all_;  // by id, one of them not yet accepted
  uint64_t last_id_ = 0;
  uint32_t calls_ = 0, feeds_ = 0;
  std::function<void()> stopped_;  // once it stops
  Counters counters_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_SERVER_CALLS_H_
