#include "node/control/peer_acceptor.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "node/control/peer_transport.h"

namespace pando::control {
namespace {

constexpr int kBacklog = 128;
constexpr int kPauseMillis = 100;

bool HasEnded(const UniqueFd& socket) {
  pollfd ready{socket.get(), POLLRDHUP, 0};
  return ::poll(&ready, 1, 0) != 0;
}

}  // namespace

std::optional<PeerAcceptor::Listening> PeerAcceptor::Listen(const std::string& address) {
  if (!TargetOf(address)) return std::nullopt;
  const size_t colon = address.rfind(':');
  const bool brackets = address.front() == '[';
  const std::string host = brackets ? address.substr(1, colon - 2) : address.substr(0, colon);
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return std::nullopt;
  }
  const in_port_t port = bound.ss_family == AF_INET6
                             ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                             : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  return Listening{std::move(socket), address.substr(0, colon + 1) + std::to_string(ntohs(port))};
}

PeerAcceptor::PeerAcceptor(Listening listening, grpc::Server* server, uint32_t connections_max)
    : listener_(std::move(listening.socket)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      server_(server),
      connections_max_(connections_max),
      thread_([this] { Run(); }) {}

PeerAcceptor::~PeerAcceptor() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void PeerAcceptor::Run() {
  for (bool room = true;;) {
    std::array<pollfd, 2> fds{{{stop_.get(), POLLIN, 0}, {room ? listener_.get() : -1, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), room ? -1 : kPauseMillis);
    if (fds[0].revents != 0) return;
    room = fds[1].revents == 0 || Accept();
  }
}

bool PeerAcceptor::Accept() {
  std::erase_if(open_, HasEnded);  // first: theirs may be the descriptors that are missing
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  }
  if (open_.size() >= connections_max_) {
    ++refused_;
    return true;
  }
  UniqueFd same(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!same.valid()) return false;
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  open_.push_back(std::move(same));
  grpc::AddInsecureChannelFromFd(server_, socket.release());
  return true;
}

}  // namespace pando::control
