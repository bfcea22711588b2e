#include "client/ctl/admin_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string_view>

#include "client/ctl/printable.h"
#include "pando/v1/admin.grpc.pb.h"

namespace pando::ctl {
namespace {

constexpr int kMessageBytesMax = 64 << 20;  // 100,000 runs and more

std::string_view PathOf(std::string_view address) {
  return address.starts_with("unix:") ? address.substr(5) : address;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct AdminClient::Impl {
  Impl(std::string path_in, int64_t timeout_ns_in)
      : path(std::move(path_in)),
        timeout_ns(timeout_ns_in),
        stub(v1::Admin::NewStub(OpenChannel(path))) {}

  void SetDeadline(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns));
  }

  absl::Status Translate(const grpc::Status& status) const {
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
        return absl::OkStatus();
      case grpc::StatusCode::UNAVAILABLE:
        return absl::UnavailableError(
            fmt::format("no node answers at {}: {}\nExpected the admin socket of a running "
                        "pando-node; its --admin names it.",
                        path, status.error_message()));
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return absl::UnavailableError(
            fmt::format("the node at {} did not answer within {:.1f} s.\nIs it stopped or "
                        "overloaded? --timeout gives it longer.",
                        path, static_cast<double>(timeout_ns) / 1e9));
      default:
        return absl::Status(
            static_cast<absl::StatusCode>(status.error_code()),
            fmt::format("the node at {} says: {}", path, Printable(status.error_message())));
    }
  }

  std::string path;
  int64_t timeout_ns;
  std::unique_ptr<v1::Admin::Stub> stub;
};

AdminClient::AdminClient(const std::string& address, int64_t timeout_ns)
    : impl_(std::make_unique<Impl>(std::string(PathOf(address)), timeout_ns)) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<v1::Status> AdminClient::GetStatus() {
  grpc::ClientContext context;
  impl_->SetDeadline(context);
  v1::Status answer;
  const absl::Status status = impl_->Translate(impl_->stub->GetStatus(&context, {}, &answer));
  if (!status.ok()) return status;
  return answer;
}

absl::StatusOr<v1::ListRunsResponse> AdminClient::ListRuns(uint32_t space, uint64_t limit,
                                                           bool peers) {
  grpc::ClientContext context;
  impl_->SetDeadline(context);
  v1::ListRunsRequest request;
  request.set_space(space);
  request.set_limit(limit);
  request.set_peers(peers);
  v1::ListRunsResponse answer;
  const absl::Status status = impl_->Translate(impl_->stub->ListRuns(&context, request, &answer));
  if (!status.ok()) return status;
  return answer;
}

absl::StatusOr<std::string> AdminClient::SelfCheck() {
  grpc::ClientContext context;
  impl_->SetDeadline(context);
  v1::SelfCheckResponse answer;
  const absl::Status status = impl_->Translate(impl_->stub->SelfCheck(&context, {}, &answer));
  if (!status.ok()) return status;
  return answer.broken();
}

}  // namespace pando::ctl
