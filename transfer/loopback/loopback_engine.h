// The TransferEngine of a LoopbackNetwork. Made by LoopbackNetwork::Add; same thread.
#ifndef PANDO_TRANSFER_LOOPBACK_LOOPBACK_ENGINE_H_
#define PANDO_TRANSFER_LOOPBACK_LOOPBACK_ENGINE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transfer/admission.h"
#include "transfer/engine.h"
#include "transfer/loopback/loopback_network.h"

namespace pando {

class LoopbackEngine final : public TransferEngine {
 public:
  ~LoopbackEngine() override;  // its peers learn of it by a message
  LoopbackEngine(const LoopbackEngine&) = delete;
  LoopbackEngine& operator=(const LoopbackEngine&) = delete;

  const std::string& address() const override { return address_; }
  [[nodiscard]] bool Start(Offer offer) override;
  void Revoke(GrantId grant) override;
  void Start(Pull pull) override;
  void Cancel(uint64_t pull) override;
  void TakeEvents(std::vector<TransferEvent>* events) override;
  TransferCounters counters() const override { return admission_.Added(out_.counters); }

 private:
  friend class LoopbackNetwork;

  // One pull connection: its requester's end and its owner's end carry the same id.
  struct Connection {
    std::string peer;
    bool ours = false;   // we pull on it
    bool heard = false;  // a page has come
    Nanos progress = 0;
    std::vector<GrantId> sending;  // a page each
  };

  LoopbackEngine(LoopbackNetwork* network, std::string address, std::function<void()> notify);

  uint64_t ConnectionTo(const std::string& peer);
  void Pump(uint64_t connection);
  void Deliver(LoopbackNetwork::Message& message);
  void OnAsk(const LoopbackNetwork::Message& message);
  bool Accept(uint64_t connection, LoopbackNetwork::Page* page);
  void Land(uint64_t connection, const LoopbackNetwork::Page& page, bool corrupt);
  void OnSent(uint64_t connection, const LoopbackNetwork::Page& page);
  void Close(uint64_t connection, bool tell);
  void CloseAllTo(const std::string& peer);
  void OnTime();
  std::optional<Nanos> NextTime() const;
  bool Busy(uint64_t id, const Connection& connection) const;
  void Flush();

  LoopbackNetwork* const network_;
  const std::string address_;
  const std::function<void()> notify_;
  transfer::Admission admission_;
  transfer::Outbox out_;
  transfer::OfferTable offers_{&out_};
  transfer::PullTable pulls_;
  std::map<uint64_t, Connection> connections_;
  std::map<std::string, uint64_t> by_peer_;  // ours
  bool told_ = false;
};

}  // namespace pando

#endif  // PANDO_TRANSFER_LOOPBACK_LOOPBACK_ENGINE_H_
