// UcxEngine: the TransferEngine between hosts, over UCX active messages, on a thread of this
// process. (A node has its UcxWorker in a process of its own: transfer/process.)
//
//   owner's thread ── commands ─► progress thread: one context, one worker, all of UCX
//                  ◄── events ──  tables, listener, connections, deadlines, checksums
//
// A requester connects to the owner's listener and asks; the owner sends each page straight from
// its slab by one active message: eager below `rendezvous_from`, by rendezvous straight into the
// requester's page from there on. Over TCP a page that fits one segment is cheaper eager: it comes
// into a buffer that stays in the cache, from which one pass copies and hashes it. Both ends are in
// UCX's PEER error mode, and there is no RMA feature: nobody reads or writes memory here except by
// our own sends and receives.
//
// The progress thread sleeps when nothing happens. UCX's own settings come from the environment
// (UCX_TLS and so on, the operator's); UCX_ERROR_SIGNALS must be "" in it before main.
//
// Threads: as TransferEngine says; the destructor waits until UCX touches no page any more.
#ifndef PANDO_TRANSFER_UCX_UCX_ENGINE_H_
#define PANDO_TRANSFER_UCX_UCX_ENGINE_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transfer/admission.h"
#include "transfer/engine.h"

namespace pando {
namespace transfer {
class UcxWorker;
}

struct UcxEngineOptions {
  std::string listen = "127.0.0.1:0";  // numeric, IPv6 in brackets; port 0: any
  TransferLimits limits = {};
  // Bytes of a page; 0: what suits the transports found (TCP alone: more than its segment).
  size_t rendezvous_from = 0;
  std::function<void()> notify = nullptr;  // events wait; on the progress thread, or in a call
};

class UcxEngine final : public TransferEngine {
 public:
  // Listens. INVALID_ARGUMENT, or UNAVAILABLE with UCX's reason.
  static absl::StatusOr<std::unique_ptr<UcxEngine>> Create(const UcxEngineOptions& options);
  ~UcxEngine() override;

  // Registers an extent with the transport, for all that is offered or pulled in it afterwards.
  // Pages outside of any are transferred too, but registered anew each time where that costs.
  void AddMemory(std::span<std::byte> extent);

  const std::string& address() const override;
  [[nodiscard]] bool Start(Offer offer) override;
  void Revoke(GrantId grant) override;
  void Start(Pull pull) override;
  void Cancel(uint64_t pull) override;
  void TakeEvents(std::vector<TransferEvent>* events) override;
  TransferCounters counters() const override;

 private:
  struct Shared;
  explicit UcxEngine(std::unique_ptr<Shared> shared);
  void Post(std::function<void(transfer::UcxWorker&)> command);

  const std::unique_ptr<Shared> shared_;
  transfer::Admission admission_;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_UCX_UCX_ENGINE_H_
