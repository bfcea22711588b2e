// ProcessEngine: a TransferEngine whose transport runs in a process of its own.
//
//   node                                              pando-transfer
//   owner's thread ── commands ─► socket ───────────► UcxWorker ◄──► peers
//                  ◄── thread ◄── events, counters ──    │
//          └────── the same extents, mapped twice ───────┘
//
// What a network library cannot digest ends it: UCX aborts on bytes that are not its own, and
// whoever reaches its ports can send some. Here that ends the transfer process alone, which is
// started again; the node and its cache stay.
//
// When the process ends, however it does:
//  1. It is reaped before anything else, so nobody touches a page on its behalf.
//  2. Its pulls end: pages without an outcome are kFailed, the pull kTransferLost. Grants that were
//     revoked end.
//  3. A new one is started, on the same address: at once if the last lived for kHealthy, else after
//     a pause that doubles. It gets the extents and the offers that are open. A page may be served
//     once more then than it was offered, to who asks for it twice.
//  4. In the pause, pulls end kTransferLost at once.
//
// Pages lie in extents that were added. Threads: as TransferEngine says; `died` and `back` come
// on a thread of the engine's. The destructor ends the process, and waits for its end.
#ifndef PANDO_TRANSFER_PROCESS_PROCESS_ENGINE_H_
#define PANDO_TRANSFER_PROCESS_PROCESS_ENGINE_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transfer/admission.h"
#include "transfer/engine.h"

namespace pando {

struct ProcessEngineOptions {
  std::string program;                 // empty: pando-transfer, beside the program that runs
  std::string listen = "127.0.0.1:0";  // numeric, IPv6 in brackets; port 0: any, kept from then on
  TransferLimits limits = {};
  size_t rendezvous_from = 0;  // as UcxEngineOptions'
  std::function<void()> notify = nullptr;
  // The process ended, and how ("signal 6 (Aborted)"); it is started again in `pause`.
  std::function<void(const std::string& how, Nanos pause)> died = nullptr;
  std::function<void()> back = nullptr;  // after `died`: the next one listens
};

class ProcessEngine final : public TransferEngine {
 public:
  // Returns once it listens. INVALID_ARGUMENT, or UNAVAILABLE with the reason.
  static absl::StatusOr<std::unique_ptr<ProcessEngine>> Create(ProcessEngineOptions options);
  ~ProcessEngine() override;

  // `extent` is this process's mapping of the memfd `fd` of kExtentBytes, which stays open as long
  // as the engine lives: it takes no descriptor of its own, so none can be missing.
  void AddMemory(std::span<std::byte> extent, int fd);
  // The process that moves pages now; 0: there is none.
  pid_t process() const;

  const std::string& address() const override;
  [[nodiscard]] bool Start(Offer offer) override;
  void Revoke(GrantId grant) override;
  void Start(Pull pull) override;
  void Cancel(uint64_t pull) override;
  void TakeEvents(std::vector<TransferEvent>* events) override;
  TransferCounters counters() const override;

 private:
  class Link;
  explicit ProcessEngine(std::unique_ptr<Link> link, const TransferLimits& limits);

  const std::unique_ptr<Link> link_;
  transfer::Admission admission_;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_PROCESS_PROCESS_ENGINE_H_
