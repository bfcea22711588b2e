#include "tests/client/fake_node.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "radix/base/ids.h"

namespace pando::client {
namespace {

constexpr int kPatienceMillis = 20'000;

bool Readable(int fd, int millis) {
  pollfd poll_fd = {fd, POLLIN, 0};
  return poll(&poll_fd, 1, millis) > 0;
}

std::string SocketPath() {
  static int count = 0;
  return testing::TempDir() + "/pando_client_" + std::to_string(getpid()) + "_" +
         std::to_string(count++);
}

template <class Value>
void Append(std::string* column, Value value) {
  column->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

MappedExtent MapOrThrow(int fd) {
  auto mapped = MappedExtent::Map(fd);
  if (!mapped.ok()) throw std::runtime_error(std::string(mapped.status().message()));
  return *std::move(mapped);
}

UniqueFd SparseExtent() {
  UniqueFd fd(memfd_create("fake-extent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(kExtentBytes.value())), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  return fd;
}

}  // namespace

FakeExtent::FakeExtent() : fd(SparseExtent()), mapped(MapOrThrow(fd.get())) {}

std::string Framed(const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  std::string bytes;
  Append(&bytes, static_cast<uint32_t>(body.size()));
  return bytes + body;
}

FakeNode::FakeNode() : path_(SocketPath()) {
  Listen();
}

FakeNode::~FakeNode() {
  unlink(path_.c_str());
}

void FakeNode::Listen() {
  unlink(path_.c_str());
  listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path_.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path_.data(), path_.size());
  ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener_.get(), 8), 0);
}

bool FakeNode::Accept() {
  const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return false;
  connection_ = UniqueFd(fd);
  in_.clear();
  fds_.clear();
  return true;
}

bool FakeNode::HasInput() {
  return !in_.empty() || Readable(connection_.get(), 0);
}

pb::ClientFrame FakeNode::Read() {
  pb::ClientFrame frame;
  while (true) {
    uint32_t length = 0;
    if (in_.size() >= sizeof(length)) std::memcpy(&length, in_.data(), sizeof(length));
    if (in_.size() >= sizeof(length) && in_.size() >= sizeof(length) + length) {
      EXPECT_TRUE(frame.ParseFromArray(in_.data() + sizeof(length), static_cast<int>(length)));
      in_.erase(0, sizeof(length) + length);
      return frame;
    }
    if (!Readable(connection_.get(), kPatienceMillis)) {
      ADD_FAILURE() << "no frame came from the client";
      return frame;
    }
    std::vector<char> bytes(1 << 16);
    iovec piece = {bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)];
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(connection_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) {
      ADD_FAILURE() << "the client closed the connection";
      return frame;
    }
    in_.append(bytes.data(), static_cast<size_t>(got));
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        fds_.emplace_back(fd);
      }
    }
  }
}

pb::ClientMessage FakeNode::ReadOne() {
  const pb::ClientFrame frame = Read();
  EXPECT_EQ(frame.messages_size(), 1);
  return frame.messages_size() == 0 ? pb::ClientMessage() : frame.messages(0);
}

void FakeNode::SendBytes(std::string_view bytes, const std::vector<int>& fds) {
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  ASSERT_EQ(sendmsg(connection_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

void FakeNode::SendFrame(const pb::NodeFrame& frame, const std::vector<int>& fds) {
  SendBytes(Framed(frame), fds);
}

void FakeNode::Answer(uint64_t serial, const std::function<void(pb::NodeMessage&)>& fill) {
  pb::NodeFrame frame;
  frame.set_boot_id(boot_id);
  frame.add_messages()->set_serial(serial);
  fill(*frame.mutable_messages(0));
  SendFrame(frame);
}

void FakeNode::AnswerAttach(uint64_t serial, uint64_t session) {
  Answer(serial, [&](auto& message) { message.mutable_attach()->set_session(session); });
}

void FakeNode::SendExtent(uint32_t id, const FakeExtent& extent) {
  pb::NodeFrame frame;
  frame.set_boot_id(boot_id);
  frame.add_extents(id);
  SendFrame(frame, {extent.fd.get()});
}

ClientTest::ClientTest() {
  options_.socket = "unix:" + node_.path();
  options_.replica_key = "replica-a";
  options_.block_tokens = 16;
  options_.page_bytes = kPageBytes;
  options_.retry_min_ns = 1;  // a test does not wait, it polls again
  options_.retry_max_ns = 1;
  options_.attach_timeout_ns = 20 * kSecond;
}

void ClientTest::Start() {
  client_ = Client::Create(options_);
}

void ClientTest::StartAttached(uint64_t session) {
  Start();
  AttachAgain(session);
}

void ClientTest::AttachAgain(uint64_t session) {
  // What the client had to say to the connection before may need a turn of its own.
  for (int turn = 0; turn < 8 && client_->state() != State::kAttaching; ++turn) client_->Poll();
  ASSERT_TRUE(node_.Accept()) << client_->last_error();
  const pb::ClientMessage message = node_.ReadOne();
  ASSERT_TRUE(message.has_attach());
  node_.AnswerAttach(message.serial(), session);
  client_->Poll();
  extent_sent_ = false;
  ASSERT_EQ(client_->state(), State::kAttached) << client_->last_error();
}

void ClientTest::SendExtentOnce() {
  if (std::exchange(extent_sent_, true)) return;
  if (!extent_) extent_ = std::make_unique<FakeExtent>();
  node_.SendExtent(3, *extent_);
}

void ClientTest::Open(uint64_t request) {
  auto call = client_->StartAcquire(request, {}, 0, 0, Soon());
  client_->Flush();
  node_.Answer(node_.ReadOne().serial(), [](auto& answer) { answer.mutable_acquire(); });
  client_->Poll();
  EXPECT_EQ(call.get().code, Code::kOk) << call.get().message;
}

void ClientTest::FillBegin(pb::NodeMessage& message, uint64_t claim, bool store, uint32_t pages,
                           const std::vector<uint64_t>& checksums) {
  pb::BeginItem* item = message.mutable_begin()->add_items();
  item->set_claim(claim);
  item->set_store(store);
  item->set_page_bytes(kPageBytes);
  for (uint32_t i = 0; i < pages; ++i) {
    Append(item->mutable_pages(), 3u << kPageIndexBits | i);
    Append(item->mutable_generations(), i + 1);
    if (!store) Append(item->mutable_checksums(), checksums.empty() ? uint64_t{0} : checksums[i]);
  }
}

Hold ClientTest::BeginHold(uint64_t claim, bool store, uint32_t pages,
                           std::vector<uint64_t> checksums) {
  SendExtentOnce();
  const Claim named = Named(claim);
  auto call = client_->StartBegin(std::span(&named, 1), Soon());
  client_->Flush();
  const pb::ClientMessage message = node_.ReadOne();
  node_.Answer(message.serial(),
               [&](auto& answer) { FillBegin(answer, claim, store, pages, checksums); });
  client_->Poll();
  EXPECT_TRUE(call.ready());
  EXPECT_EQ(call.get().code, Code::kOk) << call.get().message << client_->last_error();
  return call.get().holds.empty() ? Hold() : std::move(call.get().holds[0]);
}

}  // namespace pando::client
