// A node that does exactly what a test says, over a real Unix socket, and the client that talks to
// it. Both run on the test's thread, turn by turn: what one has sent, the other can read at once.
//
//   client().Poll();  pb::ClientFrame got = node().Read();  node().Answer(...);  client().Poll();
#ifndef PANDO_TESTS_CLIENT_FAKE_NODE_H_
#define PANDO_TESTS_CLIENT_FAKE_NODE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "pando/v1/client.pb.h"
#include "transfer/memory/host_slab.h"
#include "transfer/memory/unique_fd.h"

namespace pando::client {

namespace pb = pando::v1;

inline constexpr int64_t kSecond = 1'000'000'000;

// An extent of the node, mapped by it.
struct FakeExtent {
  FakeExtent();
  UniqueFd fd;  // sealed, but not populated: tests touch few pages
  MappedExtent mapped;
};

class FakeNode {
 public:
  FakeNode();
  ~FakeNode();

  const std::string& path() const { return path_; }
  // The oldest connection that waits becomes the one talked to. False: none waits.
  bool Accept();
  void Hangup() { connection_.reset(); }
  // As if the daemon was killed: also the socket's name is dead.
  void StopListening() { listener_.reset(); }
  void Listen();

  // The next frame and, in `fds()`, what came with it. Fails the test if none comes for a while.
  pb::ClientFrame Read();
  // The only message of the next frame.
  pb::ClientMessage ReadOne();
  bool HasInput();
  std::vector<UniqueFd>& fds() { return fds_; }

  void SendBytes(std::string_view bytes, const std::vector<int>& fds = {});
  void SendFrame(const pb::NodeFrame& frame, const std::vector<int>& fds = {});
  // One message that answers `serial`, filled by `fill`.
  void Answer(uint64_t serial, const std::function<void(pb::NodeMessage&)>& fill);
  void AnswerAttach(uint64_t serial, uint64_t session);
  // An extent before anything that names it.
  void SendExtent(uint32_t id, const FakeExtent& extent);

  uint64_t boot_id = 7;

 private:
  const std::string path_;
  UniqueFd listener_;
  UniqueFd connection_;
  std::string in_;
  std::vector<UniqueFd> fds_;
};

std::string Framed(const google::protobuf::MessageLite& message);

// A client beside a fake node.
class ClientTest : public testing::Test {
 protected:
  ClientTest();

  // Makes the client anew.
  void Start();
  // Makes the client, lets it attach as `session`.
  void StartAttached(uint64_t session = 11);
  // Goes through attach with a client that has not or no longer a session.
  void AttachAgain(uint64_t session);

  Client& client() { return *client_; }
  FakeNode& node() { return node_; }
  static int64_t Soon() { return NowNanos() + 20 * kSecond; }

  // As this life of the node names it.
  Claim Named(uint64_t claim) const { return {node_.boot_id, claim}; }
  // A request that the client has acquired, without a claim.
  void Open(uint64_t request);
  // A store or load of `pages` in extent 3 that has begun.
  Hold BeginHold(uint64_t claim, bool store, uint32_t pages, std::vector<uint64_t> checksums = {});
  // Fills a correct answer to a Begin of one claim.
  void FillBegin(pb::NodeMessage& message, uint64_t claim, bool store, uint32_t pages,
                 const std::vector<uint64_t>& checksums = {});

  FakeNode node_;
  Options options_;
  void SendExtentOnce();

  std::unique_ptr<FakeExtent> extent_;  // sent as extent 3, once a session
  bool extent_sent_ = false;
  std::unique_ptr<Client> client_;
};

inline constexpr uint64_t kPageBytes = 10000;
inline constexpr uint64_t kPageStride = 12288;

}  // namespace pando::client

#endif  // PANDO_TESTS_CLIENT_FAKE_NODE_H_
