// SessionServer, how sessions begin.
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "node/local/frame.h"
#include "node/local/session_server.h"
#include "node/local/socket_io.h"
#include "node/local/steps.h"
#include "pando/v1/client.pb.h"

namespace pando::local {
void SessionServer::Accept(UniqueFd socket) {
  if (remembered_ >= options_.sessions_max) {
    RefuseSession(socket);
  } else {
    Open(std::move(socket));
  }
}

void SessionServer::SayPaused(int error) {
  Log(LogLine::Level::kWarning, "session.accept_paused",
      {{"error", std::strerror(error)}, {"sessions", std::to_string(sessions_.size())}});
}

void SessionServer::RefuseSession(const UniqueFd& socket) {
  const std::string why =
      "sessions: found " + std::to_string(remembered_) + ", the limit of this node; end some first";
  CountRefused(RefusedOutside::What::kConnection);
  Log(LogLine::Level::kWarning, "session.refused", {{"why", why}});
  v1::NodeFrame frame;
  frame.set_boot_id(options_.boot_id.value());
  v1::NodeMessage* message = frame.add_messages();
  message->set_code(v1::LIMIT);
  message->set_message(why);
  std::string bytes;
  AppendFrame(frame, &bytes);
  SendOnce(socket.get(), bytes, {});  // a fresh socket takes so little at once
}

void SessionServer::Open(UniqueFd socket) {
  auto session = std::make_unique<Session>();
  session->id = SessionId(next_session_++);
  session->socket = std::move(socket);
  session->events = EPOLLIN;
  const SessionId id = session->id;
  session->watch =
      loop_->Watch(session->socket.get(), session->events,
                   [this, raw = session.get()](uint32_t events) { Handle(raw, events); });
  if (session->watch == EventLoop::WatchId::kNone) {
    acceptor_.Pause(errno);
    return;
  }
  const PeerCredentials peer = CredentialsOf(session->socket.get()).value_or(PeerCredentials{});
  Log(LogLine::Level::kInfo, "session.accepted",
      {{"session", std::to_string(id.value())},
       {"pid", std::to_string(peer.pid)},
       {"uid", std::to_string(peer.uid)},
       {"gid", std::to_string(peer.gid)}});
  session->peer_pid = peer.pid;
  sessions_.emplace(id, std::move(session));
  ++remembered_;
  Reached(step::kAccepted);
  Deliver(SessionOpened{id});
}

}  // namespace pando::local
