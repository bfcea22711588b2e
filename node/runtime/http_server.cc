#include "node/runtime/http_server.h"

#include <httplib.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace pando::runtime {
namespace {

constexpr size_t kThreads = 8;
constexpr int kBacklog = 128;
constexpr size_t kRequestBytesMax = 4096;
// What a connection may take to send its request, and then to read its answer, all in all.
constexpr std::chrono::milliseconds kPartTimeout{1000};
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kUnavailable = 503;

void Answer(bool good, const char* otherwise, httplib::Response* response) {
  if (!good) response->status = kUnavailable;
  response->set_content(good ? "ok\n" : otherwise, kPlain);
}

using Clock = std::chrono::steady_clock;

// The bytes of one connection, each way with one deadline for all of them: whoever sends a byte now
// and then keeps a thread no longer than whoever sends none.
class BoundedStream final : public httplib::Stream {
 public:
  explicit BoundedStream(socket_t socket) : socket_(socket) {}

  bool is_readable() const override { return Ready(POLLIN, read_until_); }
  bool is_writable() const override { return Ready(POLLOUT, write_until_); }
  ssize_t read(char* to, size_t size) override {
    // The library reads a line byte by byte.
    if (begin_ == end_) {
      if (!is_readable()) return -1;
      const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    }
    const size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    if (write_until_ == Clock::time_point()) write_until_ = Clock::now() + kPartTimeout;
    if (!is_writable()) return -1;
    return ::send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool Ready(short events, Clock::time_point until) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd ready{socket_, events, 0};
    return left > 0 && ::poll(&ready, 1, static_cast<int>(left)) > 0;
  }

  const socket_t socket_;
  const Clock::time_point read_until_ = Clock::now() + kPartTimeout;
  Clock::time_point write_until_;  // from the first write on
  std::array<char, 1024> buffer_;
  size_t begin_ = 0, end_ = 0;
};

// httplib's server, whose connections can be ended from outside: the oldest gives way when all
// threads are taken, and all of them when the server ends.
class BoundedServer final : public httplib::Server {
 public:
  // Another connection waits for a thread.
  void Arrived() {
    const std::lock_guard lock(mutex_);
    ++waiting_;
    MakeRoom();
  }
  // The library's own backlog is so short that a burst makes others wait a second to connect.
  void DeepenBacklog() { ::listen(svr_sock_, kBacklog); }
  void CutAll() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const Connection& connection : open_) ::shutdown(connection.socket, SHUT_RDWR);
  }

 private:
  struct Connection {
    socket_t socket;
    bool given_up = false;
  };

  bool process_and_close_socket(socket_t socket) override {
    const auto connection = Enter(socket);
    BoundedStream stream(socket);
    bool closed = false;
    const bool good = process_request(stream, true, closed, nullptr);
    {
      const std::lock_guard lock(mutex_);
      open_.erase(connection);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return good;
  }
  std::list<Connection>::iterator Enter(socket_t socket) {
    const std::lock_guard lock(mutex_);
    if (ending_) ::shutdown(socket, SHUT_RDWR);
    const auto connection = open_.insert(open_.end(), Connection{socket});
    --waiting_;
    MakeRoom();
    return connection;
  }
  // For each one that finds no thread, the oldest that has one is read no more. It does not notice
  // if its request has come already. Under mutex_.
  void MakeRoom() {
    const size_t wanted = open_.size() + waiting_;
    size_t over = wanted > kThreads ? wanted - kThreads : 0;
    for (Connection& connection : open_) {
      if (over == 0) return;
      --over;
      if (!std::exchange(connection.given_up, true)) ::shutdown(connection.socket, SHUT_RD);
    }
  }

  std::mutex mutex_;
  std::list<Connection> open_;  // guarded by mutex_; oldest first
  size_t waiting_ = 0;          // guarded by mutex_; for a thread
  bool ending_ = false;         // guarded by mutex_
};

class Threads final : public httplib::TaskQueue {
 public:
  explicit Threads(BoundedServer* server) : server_(server), pool_(kThreads) {}
  void enqueue(std::function<void()> work) override {
    server_->Arrived();
    pool_.enqueue(std::move(work));
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  BoundedServer* const server_;
  httplib::ThreadPool pool_;
};

// Why nobody can listen there: the library does not say.
std::string WhyNot(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
      error != 0) {
    return std::string(::gai_strerror(error)) + "; use an address of this machine";
  }
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = ::bind(socket, found->ai_addr, found->ai_addrlen) == 0;
  const int error = bound ? 0 : errno;
  ::close(socket);
  ::freeaddrinfo(found);
  if (error == 0) return "try again";
  const std::string why = std::strerror(error);
  if (error == EADDRINUSE) return why + "; free that port, choose another, or 0 for any";
  if (error == EADDRNOTAVAIL) {
    return why + "; use an address of this machine, 127.0.0.1, or 0.0.0.0 for all of them";
  }
  if (error == EACCES) return why + "; choose a port above 1023, or 0 for any";
  return why;
}

}  // namespace

struct HttpServer::Impl {
  Source source;
  BoundedServer server;
  std::thread thread;
  int port = 0;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& host, int port,
                                                              Source source) {
  auto impl = std::make_unique<Impl>();
  impl->source = std::move(source);
  const Source* from = &impl->source;
  BoundedServer& server = impl->server;
  server.new_task_queue = [&server] { return new Threads(&server); };
  server.set_payload_max_length(kRequestBytesMax);
  // Without SO_REUSEPORT, which would share a port with a living process instead of refusing it.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.Get("/healthz", [from](const httplib::Request&, httplib::Response& response) {
    Answer(from->healthy(), "the owner thread does not answer\n", &response);
  });
  server.Get("/readyz", [from](const httplib::Request&, httplib::Response& response) {
    Answer(from->ready(), "not ready\n", &response);
  });
  server.Get("/metrics", [from](const httplib::Request&, httplib::Response& response) {
    const std::optional<std::string> text = from->metrics();
    if (!text) response.status = kUnavailable;
    response.set_content(text.value_or("the owner thread does not answer\n"),
                         text ? kMetrics : kPlain);
  });
  impl->port =
      port == 0 ? server.bind_to_any_port(host) : (server.bind_to_port(host, port) ? port : -1);
  if (impl->port <= 0) {
    return absl::FailedPreconditionError("--metrics-listen: cannot listen on " + host + ":" +
                                         std::to_string(port) + ": " + WhyNot(host, port));
  }
  server.DeepenBacklog();
  impl->thread = std::thread([raw = impl.get()] { raw->server.listen_after_bind(); });
  // A server can be stopped only once it runs.
  while (!impl->server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->server.stop();
  impl_->server.CutAll();
  impl_->thread.join();
}

int HttpServer::port() const {
  return impl_->port;
}

}  // namespace pando::runtime
