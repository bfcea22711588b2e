// Any bytes as any message of the protocol between nodes.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "node/control/peer_codec.h"
#include "tests/node/control/peer_examples.h"
#include "tests/node/control/reread.h"

namespace pando::control {
namespace {

// Never a crash, and what is taken is said again in the same way.
void ReadAll(const std::string& bytes) {
  for (const PeerCall call :
       {PeerCall::kHello, PeerCall::kGrant, PeerCall::kDone, PeerCall::kGoodbye}) {
    EXPECT_EQ(RereadRequest(call, DecodeRequest(call, bytes)), "");
    EXPECT_EQ(RereadAnswer(call, DecodeAnswer(call, bytes)), "");
  }
  const auto feed = DecodeFeed(bytes);
  EXPECT_EQ(RereadFeed(feed), "");
  if (const auto* news = std::get_if<FeedNews>(&feed)) {
    EXPECT_TRUE(news->piece.has_value() || news->totals.has_value());
  }
  EXPECT_EQ(RereadFeedRequest(DecodeFeedRequest(bytes)), "");
}

// FAULTS G2, E4
TEST(PeerCodec, RandomAndFlippedBytes) {
  google::protobuf::LogSilencer quiet;
  std::mt19937_64 random(20261130);
  std::vector<std::string> seeds;
  for (const PeerRequestBody& request : ExampleRequests()) seeds.push_back(EncodeRequest(request));
  for (const PeerAnswerBody& answer : ExampleAnswers()) seeds.push_back(EncodeAnswer(answer));
  const FeedPiece piece = ExamplePiece();
  seeds.push_back(EncodeFeed(&piece, ExampleTotals()));
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = seeds[random() % seeds.size()];
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    if (i % 5 == 0) bytes += seeds[random() % seeds.size()];
    for (uint64_t flips = random() % 4; flips > 0 && !bytes.empty(); --flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (i % 7 == 0) {
      for (char& byte : bytes) byte = static_cast<char>(random());
    }
    ReadAll(bytes);
  }
}

}  // namespace
}  // namespace pando::control
