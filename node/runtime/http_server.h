// /metrics, /healthz and /readyz for whoever scrapes and supervises the node.
//
//   /healthz   200 while the owner thread answers
//   /readyz    200 once the slab is there and until a drain, else 503
//
// A few threads that only translate; each answer is one connection's last. Whoever opens
// connections and says nothing, or little by little, keeps nobody else waiting, and not the
// server's end. Thread-safe.
#ifndef PANDO_NODE_RUNTIME_HTTP_SERVER_H_
#define PANDO_NODE_RUNTIME_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace pando::runtime {

class HttpServer {
 public:
  struct Source {
    std::function<std::optional<std::string>()> metrics;  // nullopt: not now
    std::function<bool()> healthy, ready;
  };
  // `port` 0: any that is free.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& host, int port,
                                                           Source source);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_HTTP_SERVER_H_
