// The admin service of a node, asked over its Unix socket, each call with a deadline.
//
// Errors: UNAVAILABLE if no node answers there in time, otherwise what the node said; the message
// says what to do. One thread.
#ifndef PANDO_CLIENT_CTL_ADMIN_CLIENT_H_
#define PANDO_CLIENT_CTL_ADMIN_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "pando/v1/admin.pb.h"

namespace pando::ctl {

class AdminClient {
 public:
  // `address` is unix:PATH or PATH. Connects with the first call.
  AdminClient(const std::string& address, int64_t timeout_ns);
  ~AdminClient();

  absl::StatusOr<v1::Status> GetStatus();
  absl::StatusOr<v1::ListRunsResponse> ListRuns(uint32_t space, uint64_t limit, bool peers);
  // Empty, or what the node's own recount found broken.
  absl::StatusOr<std::string> SelfCheck();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_ADMIN_CLIENT_H_
