// The peer port: takes connections for a gRPC server, which would stop to listen for ever after the
// first one that it has no descriptor for.
//
//   peer ──► PeerAcceptor ──► grpc::AddInsecureChannelFromFd
//
// At most `connections_max` at once; another one is closed at once, and counted. (The server closes
// those that ask nothing: GRPC_ARG_MAX_CONNECTION_IDLE_MS.) When the system has no descriptor left,
// nobody is accepted for a moment.
//
// Threads: accepts on one of its own, asleep while nobody comes; counters from any.
#ifndef PANDO_NODE_CONTROL_PEER_ACCEPTOR_H_
#define PANDO_NODE_CONTROL_PEER_ACCEPTOR_H_

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "transfer/memory/unique_fd.h"

namespace grpc {
class Server;
}

namespace pando::control {

class PeerAcceptor {
 public:
  // A socket that listens on `address` (numeric, IPv6 in brackets; port 0: any), and its address;
  // nullopt: it cannot be had.
  struct Listening {
    UniqueFd socket;
    std::string address;
  };
  static std::optional<Listening> Listen(const std::string& address);

  // `server` outlives it.
  PeerAcceptor(Listening listening, grpc::Server* server, uint32_t connections_max);
  ~PeerAcceptor();
  PeerAcceptor(const PeerAcceptor&) = delete;
  PeerAcceptor& operator=(const PeerAcceptor&) = delete;

  uint64_t refused() const { return refused_; }

 private:
  void Run();
  // False: there is no descriptor left.
  bool Accept();

  const UniqueFd listener_, stop_;
  grpc::Server* const server_;
  const uint32_t connections_max_;
  std::vector<UniqueFd> open_;  // the same sockets as the server's
  std::atomic<uint64_t> refused_ = 0;
  std::thread thread_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_PEER_ACCEPTOR_H_
