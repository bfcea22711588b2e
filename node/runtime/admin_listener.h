// The admin socket: takes connections for the admin server, which would stop to listen for ever
// after the first one that it has no descriptor for.
//
//   pandoctl ──► Listener ──► Acceptor ──► AdminServer::Serve
//
// A few connections at a time: the oldest gives way to a newer one, so that nobody who leaves some
// open keeps the others out. Owner thread.
#ifndef PANDO_NODE_RUNTIME_ADMIN_LISTENER_H_
#define PANDO_NODE_RUNTIME_ADMIN_LISTENER_H_

#include <deque>

#include "node/control/admin_server.h"
#include "node/local/acceptor.h"
#include "node/runtime/log.h"
#include "transfer/memory/unique_fd.h"

namespace pando::runtime {

class AdminListener {
 public:
  static constexpr size_t kConnections = 16;  // two descriptors each

  // All of them outlive it.
  AdminListener(local::EventLoop* loop, local::Listener listener, control::AdminServer* server,
                Log* log);

 private:
  void Serve(UniqueFd socket);

  control::AdminServer* const server_;
  std::deque<UniqueFd> open_;  // the same sockets as the server's, oldest first
  local::Acceptor acceptor_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_ADMIN_LISTENER_H_
