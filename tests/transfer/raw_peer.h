// A peer that speaks raw UCX, and so can say anything: what it is told to send leaves as it is.
// One thread; nothing moves but in Progress.
#ifndef PANDO_TESTS_TRANSFER_RAW_PEER_H_
#define PANDO_TESTS_TRANSFER_RAW_PEER_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <list>
#include <string>
#include <vector>

namespace pando {

struct RawMessage {
  unsigned id = 0;  // transfer/ucx/wire.h
  std::vector<std::byte> header, payload;
  bool rendezvous = false;
};

class RawPeer {
 public:
  RawPeer();
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  const std::string& address() const { return address_; }  // where it listens
  void Connect(const std::string& address);
  bool connected() const { return endpoint_ != nullptr; }  // by either side

  void Send(RawMessage message);
  // Moves what can move; eager messages that came are added to `got`.
  void Progress();
  size_t sending() const { return sending_.size(); }

  std::vector<RawMessage> got;

 private:
  struct Sending {
    RawMessage message;
    RawPeer* peer = nullptr;
    std::list<Sending>::iterator self;
  };

  void Listen();
  void Endpoint(ucp_ep_params_t params);
  static void OnSent(void* request, ucs_status_t status, void* sending);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  ucp_conn_request_h caller_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::string address_;
  std::list<Sending> sending_;  // until UCX is done with their bytes
};

}  // namespace pando

#endif  // PANDO_TESTS_TRANSFER_RAW_PEER_H_
