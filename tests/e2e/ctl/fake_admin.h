// An admin service whose answers the test chooses, on a Unix socket in a folder of its own.
// Answers may be changed only between calls.
#ifndef PANDO_TESTS_E2E_CTL_FAKE_ADMIN_H_
#define PANDO_TESTS_E2E_CTL_FAKE_ADMIN_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "pando/v1/admin.grpc.pb.h"

namespace pando::e2e {

class FakeAdmin : public v1::Admin::Service {
 public:
  FakeAdmin();
  ~FakeAdmin() override;

  std::string address() const { return "unix:" + folder_ + "/admin.sock"; }

  v1::Status status;
  v1::ListRunsResponse runs;
  std::string broken;
  grpc::Status error;              // answered instead, unless OK
  v1::ListRunsRequest last_asked;  // for runs

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::Status* answer) override;
  grpc::Status ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                        v1::ListRunsResponse* answer) override;
  grpc::Status SelfCheck(grpc::ServerContext* context, const v1::SelfCheckRequest* request,
                         v1::SelfCheckResponse* answer) override;

 private:
  std::string folder_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_CTL_FAKE_ADMIN_H_
