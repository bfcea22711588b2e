#include "node/runtime/admin_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace pando::runtime {
namespace {

bool HasEnded(const UniqueFd& socket) {
  pollfd ready{socket.get(), POLLRDHUP, 0};
  return ::poll(&ready, 1, 0) != 0;
}

}  // namespace

AdminListener::AdminListener(local::EventLoop* loop, local::Listener listener,
                             control::AdminServer* server, Log* log)
    : server_(server),
      acceptor_(
          loop, std::move(listener), [this](UniqueFd socket) { Serve(std::move(socket)); },
          [log](int error) {
            log->Write(LogLine::Level::kWarning, "admin.accept_paused",
                       {{"error", std::strerror(error)}});
          }) {}

void AdminListener::Serve(UniqueFd socket) {
  std::erase_if(open_, HasEnded);
  if (open_.size() >= kConnections) {
    ::shutdown(open_.front().get(), SHUT_RDWR);  // the server sees its end, and closes it
    open_.pop_front();
  }
  UniqueFd same(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!same.valid()) {
    acceptor_.Pause(errno);
    return;
  }
  open_.push_back(std::move(same));
  server_->Serve(socket.release());
}

}  // namespace pando::runtime
