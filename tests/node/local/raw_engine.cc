#include "tests/node/local/raw_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "node/core/limits.h"
#include "node/local/clock.h"
#include "node/local/socket_io.h"

namespace pando::local {
namespace {

constexpr Nanos kNanosPerMilli = 1'000'000;

// False at the deadline.
bool WaitReady(int fd, short events, Nanos deadline) {
  const Nanos left = deadline - Now();
  pollfd ready{fd, events, 0};
  return ::poll(&ready, 1, left <= 0 ? 0 : static_cast<int>(left / kNanosPerMilli) + 1) > 0;
}

}  // namespace

UniqueFd OwnPidfd() {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
}

std::string FrameOf(const v1::ClientFrame& frame) {
  std::string bytes;
  AppendFrame(frame, &bytes);
  return bytes;
}

std::string FrameOf(const v1::ClientMessage& message) {
  v1::ClientFrame frame;
  *frame.add_messages() = message;
  return FrameOf(frame);
}

v1::ClientMessage AttachMessage(const std::string& replica_key, uint64_t serial) {
  v1::ClientMessage message;
  message.set_serial(serial);
  v1::Attach* attach = message.mutable_attach();
  attach->set_protocol_min(limits::kProtocolVersion);
  attach->set_protocol_max(limits::kProtocolVersion);
  attach->set_checksum_formula(limits::kChecksumFormula);
  attach->set_replica_key(replica_key);
  attach->set_role(v1::BOTH);
  attach->set_world_size(1);
  attach->set_block_tokens(4);
  attach->set_page_bytes(4096);
  v1::Field* field = attach->add_fields();
  field->set_name("model");
  field->set_value("m");
  return message;
}

std::string TokenBytes(uint32_t first, uint32_t count) {
  std::string bytes(count * sizeof(uint32_t), '\0');
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t token = first + i;
    std::memcpy(bytes.data() + i * sizeof(token), &token, sizeof(token));
  }
  return bytes;
}

v1::ClientMessage ProbeMessage(uint64_t serial, uint32_t first, uint32_t count) {
  v1::ClientMessage message;
  message.set_serial(serial);
  message.mutable_probe()->mutable_prompt()->set_tokens(TokenBytes(first, count));
  return message;
}

UniqueFd RawEngine::NewSocket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

RawEngine::RawEngine(const std::string& socket_path, UniqueFd unconnected) : buffer_(64 << 10) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
  const int fd = unconnected.get();
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return;
  }
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  socket_ = std::move(unconnected);
}

bool RawEngine::Send(std::string_view bytes, const std::vector<int>& fds, int wait_ms) {
  const Nanos deadline = Now() + wait_ms * kNanosPerMilli;
  std::vector<int> with = fds;
  while (!bytes.empty()) {
    const Sent sent = SendOnce(socket_.get(), bytes, with);
    if (sent.io == Io::kDone) {
      bytes.remove_prefix(sent.bytes);
      with.clear();
    } else if (sent.io != Io::kAgain || !WaitReady(socket_.get(), POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool RawEngine::Fill(int wait_ms) {
  if (!WaitReady(socket_.get(), POLLIN, Now() + wait_ms * kNanosPerMilli)) return false;
  const Received received = ReceiveOnce(socket_.get(), buffer_, &fds_);
  if (received.io == Io::kAgain) return true;
  if (received.io != Io::kDone) {
    hung_up_ = true;
    return false;
  }
  reader_.Feed({buffer_.data(), received.bytes});
  waiting_ = false;
  return true;
}

std::optional<v1::NodeFrame> RawEngine::Receive(int wait_ms) {
  const Nanos deadline = Now() + wait_ms * kNanosPerMilli;
  while (true) {
    std::string_view bytes;
    if (!waiting_ && reader_.Next(&bytes) == FrameReader::Result::kFrame) {
      v1::NodeFrame frame;
      if (!frame.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
      return frame;
    }
    waiting_ = true;
    const Nanos left = deadline - Now();
    if (left <= 0 || !Fill(static_cast<int>(left / kNanosPerMilli) + 1)) return std::nullopt;
  }
}

bool RawEngine::WaitHangUp(int wait_ms) {
  const Nanos deadline = Now() + wait_ms * kNanosPerMilli;
  while (!hung_up_ && Now() < deadline) {
    Receive(static_cast<int>((deadline - Now()) / kNanosPerMilli) + 1);
  }
  return hung_up_;
}

std::optional<v1::NodeMessage> RawEngine::Attach(const std::string& replica_key) {
  const UniqueFd pidfd = OwnPidfd();
  if (!Send(FrameOf(AttachMessage(replica_key)), {pidfd.get()})) return std::nullopt;
  const std::optional<v1::NodeFrame> frame = Receive();
  if (!frame || frame->messages_size() == 0) return std::nullopt;
  return frame->messages(0);
}

std::optional<v1::NodeMessage> RawEngine::Call(const v1::ClientMessage& message) {
  if (!Send(FrameOf(message))) return std::nullopt;
  const std::optional<v1::NodeFrame> frame = Receive();
  if (!frame || frame->messages_size() == 0) return std::nullopt;
  return frame->messages(0);
}

bool RawEngine::IsServed() {
  const uint64_t serial = ++serial_;
  const std::optional<v1::NodeMessage> answer = Call(ProbeMessage(serial, 0, 16));
  return answer && answer->serial() == serial && answer->code() == v1::OK;
}

}  // namespace pando::local
