#include "node/control/peer_transport.h"

#include <arpa/inet.h>
#include <grpc/support/log.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "node/control/quiet.h"
#include "node/core/problem.h"

namespace pando::control {
namespace {

constexpr std::array<const char*, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};
constexpr size_t kTextMax = 512;

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MakePeerCredentials() {
  return grpc::InsecureChannelCredentials();
}

void QuietGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

grpc::ByteBuffer BufferOf(std::string bytes) {
  auto* const owned = new std::string(std::move(bytes));
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owned);
  return {&slice, 1};
}

Flat::Flat(const grpc::ByteBuffer& buffer) {
  if (buffer.TrySingleSlice(&slice_).ok()) return;
  // Only a buffer that is not valid fails, which reads as an empty message.
  [[maybe_unused]] const grpc::Status dumped = buffer.DumpToSingleSlice(&slice_);
}

grpc::Status StatusOf(PeerCode code, const std::string& message) {
  switch (code) {
    case PeerCode::kOk:
      return grpc::Status::OK;
    case PeerCode::kInvalid:
      return {grpc::StatusCode::INVALID_ARGUMENT, message};
    case PeerCode::kIncompatible:
      return {grpc::StatusCode::FAILED_PRECONDITION, message};
    case PeerCode::kUnknown:
    case PeerCode::kMiss:
      return {grpc::StatusCode::NOT_FOUND, message};
    case PeerCode::kBusy:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, message};
  }
  return {grpc::StatusCode::INTERNAL, message};
}

std::string TextOf(const grpc::Status& status) {
  const auto code = static_cast<size_t>(status.error_code());
  const char* const name = code < kCodeNames.size() ? kCodeNames[code] : "UNKNOWN";
  return status.error_message().empty()
             ? name
             : Text(name, ": ", Quotable(status.error_message(), kTextMax));
}

std::optional<std::string> TargetOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const char* const end = address.data() + address.size();
  uint16_t port = 0;
  const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end) return std::nullopt;
  std::string host = address.substr(0, colon);
  in6_addr ignored{};
  if (::inet_pton(AF_INET, host.c_str(), &ignored) == 1) return "ipv4:" + address;
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return std::nullopt;
  host = host.substr(1, host.size() - 2);
  if (::inet_pton(AF_INET6, host.c_str(), &ignored) != 1) return std::nullopt;
  return "ipv6:%5B" + host + "%5D:" + address.substr(colon + 1);
}

}  // namespace pando::control
