// The progress thread's side of a UcxEngine: everything that touches UCX.
//
//   Turn: commands ─► progress ─► asks to serve ─► pump ─► close what failed ─► deadlines, stalls
//
// Invariants:
//  1. Every operation of UCX that may touch a page is an Operation, alive until its callback; a
//     connection is gone only when its close and all its operations are over.
//  2. Callbacks of errors only mark; connections are closed by the turn.
//  3. Asks are served after the commands of the same turn, so that a grant that was offered before
//     its requester heard of it is always found.
//
// One thread after Open. Knows no lock.
#ifndef PANDO_TRANSFER_UCX_UCX_WORKER_H_
#define PANDO_TRANSFER_UCX_UCX_WORKER_H_

#include <ucp/api/ucp.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "transfer/offer_table.h"
#include "transfer/outbox.h"
#include "transfer/pull_table.h"
#include "transfer/ucx/ucx_engine.h"
#include "transfer/ucx/wire.h"

namespace pando::transfer {

class UcxWorker {
 public:
  explicit UcxWorker(const UcxEngineOptions& options);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  absl::Status Open();
  const std::string& address() const { return address_; }
  int event_fd() const { return event_fd_; }

  void AddMemory(std::span<std::byte> extent);
  void Start(Offer offer) { offers_.Start(std::move(offer)); }
  void Revoke(const GrantId& grant) { offers_.Revoke(grant); }
  void Start(Pull pull);
  void Cancel(uint64_t pull) { pulls_.EndByCaller(pull, PullStatus::kCancelled); }

  // Some progress of UCX; false: there was nothing to do.
  bool Progress();
  // Everything else that is due. The time of the next thing that is due by itself.
  std::optional<Nanos> Turn();
  // True: sleep on event_fd.
  bool Arm();
  // Closes all connections and waits, bounded, for what runs on them.
  void CloseAll();

  Outbox& outbox() { return out_; }

 private:
  struct Connection {
    UcxWorker* worker = nullptr;
    uint64_t id = 0;
    ucp_ep_h endpoint = nullptr;
    std::string peer;      // the address we pull from; empty: it pulls from us
    bool heard = false;    // its other side has answered
    bool failed = false;   // told by UCX, or by us
    bool closing = false;  // close has been called
    void* close_request = nullptr;
    uint32_t operations = 0, sending = 0;  // pages being sent are both
    Nanos progress = 0;
  };
  enum class OperationKind : uint8_t { kControl, kSendPages, kReceivePage };
  struct Operation {  // from its start until its callback
    OperationKind kind = OperationKind::kControl;
    Connection* connection = nullptr;
    std::vector<std::byte> header, payload;  // of a message; its payload if it is no pages
    GrantId grant;                           // kSendPages
    std::vector<ucp_dt_iov_t> pages;
    uint64_t wire = 0;  // kReceivePage
    uint32_t position = 0;
    uint64_t checksum = 0;
    std::span<const std::byte> to;
  };
  struct Waiting {
    uint64_t connection = 0;
    Ask ask;
  };
  struct Taken {  // from an offer, to be sent
    uint32_t position = 0;
    std::span<const std::byte> bytes;
  };

  // ucx_worker.cc
  absl::Status OpenContext();
  absl::Status OpenListener();
  size_t RendezvousFrom() const;
  absl::Status SetHandler(unsigned id, ucp_am_recv_callback_t handler);
  ucp_mem_h HandleOf(const void* start, size_t bytes) const;

  // ucx_connections.cc
  Connection* ConnectionTo(const std::string& address);
  void Accept(ucp_conn_request_h request);
  Connection* Connect(ucp_ep_params_t* params, const std::string& peer);
  // Whom a message came from; null: nobody that still counts.
  Connection* SenderOf(const ucp_am_recv_param_t* param);
  bool Busy(const Connection& connection) const;
  void BeginClose(Connection* connection);
  bool IsGone(Connection* connection);
  std::optional<Nanos> CloseFailedAndStalled();
  static void OnConnectionRequest(ucp_conn_request_h request, void* self);
  static void OnError(void* connection, ucp_ep_h endpoint, ucs_status_t status);

  // ucx_owner.cc
  static ucs_status_t OnAsk(void* self, const void* header, size_t header_bytes, void* data,
                            size_t bytes, const ucp_am_recv_param_t* param);
  void Serve(const Waiting& waiting);
  // Those of `ask` that were taken, as few messages as may be.
  void SendPages(Connection* connection, const Ask& ask, std::span<const Taken> pages);
  void SendRefusals(Connection* connection, uint64_t wire, Refusal reason,
                    std::span<const uint32_t> positions);

  // ucx_requester.cc
  static ucs_status_t OnPages(void* self, const void* header, size_t header_bytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param);
  static ucs_status_t OnRefusal(void* self, const void* header, size_t header_bytes, void* data,
                                size_t bytes, const ucp_am_recv_param_t* param);
  void Receive(Connection* connection, uint64_t pull, uint32_t position, const Landing& landing,
               void* descriptor);
  void Pump(Connection* connection);

  // ucx_operations.cc
  Operation* NewOperation(OperationKind kind, Connection* connection);
  void Send(Operation* operation, unsigned id, uint32_t flags);
  void Over(Operation* operation, ucs_status_t status);
  static void OnSent(void* request, ucs_status_t status, void* operation);
  static void OnReceived(void* request, ucs_status_t status, size_t length, void* operation);

  const UcxEngineOptions options_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  int event_fd_ = -1;
  size_t rendezvous_from_ = 0;
  std::string address_;
  std::map<const std::byte*, std::pair<size_t, ucp_mem_h>> memory_;  // by start

  Outbox out_;
  OfferTable offers_{&out_};
  PullTable pulls_;
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;  // by id
  absl::flat_hash_map<ucp_ep_h, Connection*> by_endpoint_;
  std::map<std::string, Connection*> by_peer_;  // those we pull on, until they fail
  uint64_t next_connection_ = 0;
  uint32_t accepted_ = 0;                    // of connections_, those that peers made
  std::vector<ucp_conn_request_h> callers_;  // to be accepted
  std::vector<Waiting> asks_;
  std::vector<Operation*> free_operations_;
  std::random_device random_;
};

Nanos MonotonicNow();
// Of two times, either of which may be none.
std::optional<Nanos> Earlier(std::optional<Nanos> a, std::optional<Nanos> b);

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_UCX_UCX_WORKER_H_
