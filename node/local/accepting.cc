// SessionServer, how sessions begin.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "node/local/clock.h"
#include "node/local/frame.h"
#include "node/local/session_server.h"
#include "node/local/socket_io.h"
#include "node/local/steps.h"
#include "pando/v1/client.pb.h"

namespace pando::local {
namespace {

constexpr int kAcceptsPerTurn = 16;
// How long nobody is accepted after the system had no room for a new descriptor. Without a pause
// the connection that waits would wake the loop for ever.
constexpr Nanos kAcceptPause = 100'000'000;

bool IsPassing(int error) {
  return error == EINTR || error == ECONNABORTED || error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

void SessionServer::Accept() {
  for (int i = 0; i < kAcceptsPerTurn && accepting_; ++i) {
    UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (!IsPassing(errno)) PauseAccepting(errno);
      return;
    }
    if (sessions_.size() >= options_.sessions_max) {
      RefuseSession(socket);
    } else {
      Open(std::move(socket));
    }
  }
}

void SessionServer::PauseAccepting(int error) {
  Log(LogLine::Level::kWarning, "session.accept_paused",
      {{"error", std::strerror(error)}, {"sessions", std::to_string(sessions_.size())}});
  loop_->Rewatch(accept_watch_, listener_.fd(), 0);
  loop_->At(Now() + kAcceptPause, [this] {
    if (accepting_) loop_->Rewatch(accept_watch_, listener_.fd(), EPOLLIN);
  });
}

void SessionServer::RefuseSession(const UniqueFd& socket) {
  const std::string why = "sessions: found " + std::to_string(sessions_.size()) +
                          ", the limit of this node; end some first";
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
  session->id = SessionId(++last_session_);
  session->socket = std::move(socket);
  session->events = EPOLLIN;
  const SessionId id = session->id;
  session->watch =
      loop_->Watch(session->socket.get(), session->events,
                   [this, raw = session.get()](uint32_t events) { Handle(raw, events); });
  if (session->watch == EventLoop::WatchId::kNone) {
    PauseAccepting(errno);
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
  Reached(step::kAccepted);
  Deliver(SessionOpened{id});
}

}  // namespace pando::local
