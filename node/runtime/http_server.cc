#include "node/runtime/http_server.h"

#include <httplib.h>

#include <chrono>
#include <thread>
#include <utility>

namespace pando::runtime {
namespace {

constexpr size_t kThreads = 2;
constexpr size_t kRequestBytesMax = 4096;
constexpr time_t kReadTimeoutSeconds = 2;
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kUnavailable = 503;

void Answer(bool good, const char* otherwise, httplib::Response* response) {
  if (!good) response->status = kUnavailable;
  response->set_content(good ? "ok\n" : otherwise, kPlain);
}

}  // namespace

struct HttpServer::Impl {
  Source source;
  httplib::Server server;
  std::thread thread;
  int port = 0;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& host, int port,
                                                              Source source) {
  auto impl = std::make_unique<Impl>();
  impl->source = std::move(source);
  const Source* from = &impl->source;
  httplib::Server& server = impl->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // A kept connection would be polled a hundred times a second.
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(kReadTimeoutSeconds);
  server.set_write_timeout(kReadTimeoutSeconds);
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
                                         std::to_string(port) +
                                         "; free that port, choose another, or 0 for any");
  }
  impl->thread = std::thread([raw = impl.get()] { raw->server.listen_after_bind(); });
  // A server can be stopped only once it runs.
  while (!impl->server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->server.stop();
  impl_->thread.join();
}

int HttpServer::port() const {
  return impl_->port;
}

}  // namespace pando::runtime
