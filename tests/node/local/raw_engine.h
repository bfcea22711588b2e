// The engine's end of a session, byte by byte: what a client would never do can be done here.
//
// Every wait has a deadline and says by its result that it passed. One thread.
#ifndef PANDO_TESTS_NODE_LOCAL_RAW_ENGINE_H_
#define PANDO_TESTS_NODE_LOCAL_RAW_ENGINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/local/frame.h"
#include "pando/v1/client.pb.h"
#include "transfer/memory/unique_fd.h"

namespace pando::local {

// This process's own pidfd.
UniqueFd OwnPidfd();
// A frame of one or several messages.
std::string FrameOf(const v1::ClientFrame& frame);
std::string FrameOf(const v1::ClientMessage& message);
// An attach of role both, block size 4, pages of 4 KiB, that a node accepts.
v1::ClientMessage AttachMessage(const std::string& replica_key, uint64_t serial = 1);
// The bytes of tokens first, first + 1, ...
std::string TokenBytes(uint32_t first, uint32_t count);
v1::ClientMessage ProbeMessage(uint64_t serial, uint32_t first, uint32_t count);

class RawEngine {
 public:
  static constexpr int kWaitMs = 10'000;

  // Connects; connected() says whether it went well.
  explicit RawEngine(const std::string& socket_path) : RawEngine(socket_path, NewSocket()) {}
  RawEngine(const std::string& socket_path, UniqueFd unconnected);
  static UniqueFd NewSocket();

  bool connected() const { return socket_.valid(); }
  int socket() const { return socket_.get(); }
  void Disconnect() { socket_.reset(); }

  // Sends all of it, `fds` with the first byte. False if the node hung up or does not read.
  bool Send(std::string_view bytes, const std::vector<int>& fds = {}, int wait_ms = kWaitMs);
  // The next frame; nullopt at the deadline or when the node has hung up.
  std::optional<v1::NodeFrame> Receive(int wait_ms = kWaitMs);
  // True once the node has hung up (frames that came before are skipped).
  bool WaitHangUp(int wait_ms = kWaitMs);
  // Attaches with this process's pidfd; the first answer.
  std::optional<v1::NodeMessage> Attach(const std::string& replica_key);
  // Sends one message, waits for the first answer of the next frame.
  std::optional<v1::NodeMessage> Call(const v1::ClientMessage& message);
  // A probe is answered: the session lives, and so does the node.
  bool IsServed();

  bool hung_up() const { return hung_up_; }
  // The descriptors that came with the frames so far.
  std::vector<UniqueFd>& fds() { return fds_; }

 private:
  bool Fill(int wait_ms);  // reads more

  UniqueFd socket_;
  FrameReader reader_;
  std::vector<UniqueFd> fds_;
  std::vector<char> buffer_;
  bool waiting_ = true;  // the reader has nothing more
  bool hung_up_ = false;
  uint64_t serial_ = 1000;
};

}  // namespace pando::local

#endif  // PANDO_TESTS_NODE_LOCAL_RAW_ENGINE_H_
