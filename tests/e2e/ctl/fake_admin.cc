#include "tests/e2e/ctl/fake_admin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace pando::e2e {

FakeAdmin::FakeAdmin() {
  std::string pattern = std::filesystem::temp_directory_path() / "pando-admin-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
}

FakeAdmin::~FakeAdmin() {
  server_->Shutdown();
  server_->Wait();
  std::filesystem::remove_all(folder_);
}

grpc::Status FakeAdmin::GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                                  v1::Status* answer) {
  *answer = status;
  return error;
}

grpc::Status FakeAdmin::ListRuns(grpc::ServerContext*, const v1::ListRunsRequest* request,
                                 v1::ListRunsResponse* answer) {
  last_asked = *request;
  *answer = runs;
  return error;
}

grpc::Status FakeAdmin::SelfCheck(grpc::ServerContext*, const v1::SelfCheckRequest*,
                                  v1::SelfCheckResponse* answer) {
  answer->set_broken(broken);
  return error;
}

}  // namespace pando::e2e
