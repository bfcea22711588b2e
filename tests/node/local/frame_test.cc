#include "node/local/frame.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "node/core/limits.h"
#include "pando/v1/client.pb.h"

namespace pando::local {
namespace {

std::string Frame(const std::string& payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + payload;
}

// All whole frames of `stream`, fed in pieces that end at `cuts`.
std::vector<std::string> Cut(const std::string& stream, const std::vector<size_t>& cuts) {
  FrameReader reader;
  std::vector<std::string> frames;
  size_t from = 0;
  for (const size_t to : cuts) {
    const std::string piece = stream.substr(from, to - from);  // dies before the next one
    reader.Feed(piece);
    std::string_view frame;
    while (reader.Next(&frame) == FrameReader::Result::kFrame) frames.emplace_back(frame);
    from = to;
  }
  return frames;
}

TEST(FrameReader, FindsTheSameFramesHoweverTheStreamIsCut) {
  const std::vector<std::string> payloads = {"", "a", std::string(300, 'b'), "", "cd"};
  std::string stream;
  for (const std::string& payload : payloads) stream += Frame(payload);

  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    EXPECT_EQ(Cut(stream, {cut, stream.size()}), payloads) << "cut at " << cut;
  }
  std::vector<size_t> every;
  for (size_t i = 1; i <= stream.size(); ++i) every.push_back(i);
  EXPECT_EQ(Cut(stream, every), payloads);
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> cuts;
    for (size_t at = 0; at < stream.size();) {
      at = std::min(stream.size(), at + 1 + random() % 40);
      cuts.push_back(at);
    }
    EXPECT_EQ(Cut(stream, cuts), payloads);
  }
}

TEST(FrameReader, TakesAFrameOfTheLargestSizeAndRefusesOneMore) {
  const std::string largest(limits::kFrameBytes, 'x');
  const std::string stream = Frame(largest);
  EXPECT_EQ(Cut(stream, {100, stream.size()}), std::vector<std::string>{largest});

  // FAULTS G2: the length alone is enough to refuse it; nothing is allocated for it.
  FrameReader reader;
  const uint32_t length = limits::kFrameBytes + 1;
  reader.Feed({reinterpret_cast<const char*>(&length), sizeof(length)});
  std::string_view frame;
  EXPECT_EQ(reader.Next(&frame), FrameReader::Result::kTooLong);
  EXPECT_EQ(reader.announced(), length);
  EXPECT_EQ(reader.pending(), 0u);
  reader.Feed(Frame("ok"));
  EXPECT_EQ(reader.Next(&frame), FrameReader::Result::kTooLong) << "out of step for good";
}

TEST(FrameReader, KeepsNothingBetweenFrames) {
  FrameReader reader;
  const std::string stream = Frame(std::string(1 << 20, 'x'));
  std::string_view frame;
  reader.Feed(std::string_view(stream).substr(0, 1000));
  EXPECT_EQ(reader.Next(&frame), FrameReader::Result::kNeedMore);
  EXPECT_EQ(reader.pending(), 1000u);
  reader.Feed(std::string_view(stream).substr(1000));
  EXPECT_EQ(reader.Next(&frame), FrameReader::Result::kFrame);
  EXPECT_EQ(reader.Next(&frame), FrameReader::Result::kNeedMore);
  EXPECT_EQ(reader.pending(), 0u);
}

TEST(AppendFrame, WritesWhatTheReaderReads) {
  v1::NodeFrame frame;
  frame.set_boot_id(17);
  frame.add_extents(3);
  std::string stream;
  ASSERT_TRUE(AppendFrame(frame, &stream));
  ASSERT_TRUE(AppendFrame(v1::NodeFrame(), &stream));
  const std::vector<std::string> frames = Cut(stream, {stream.size()});
  ASSERT_EQ(frames.size(), 2u);
  v1::NodeFrame read;
  ASSERT_TRUE(read.ParseFromString(frames[0]));
  EXPECT_EQ(read.boot_id(), 17u);
  EXPECT_EQ(read.extents_size(), 1);
}

TEST(AppendFrame, RefusesWhatIsTooLong) {
  v1::NodeFrame frame;
  frame.add_messages()->mutable_message()->assign(limits::kFrameBytes, 'x');
  std::string stream = "before";
  EXPECT_FALSE(AppendFrame(frame, &stream));
  EXPECT_EQ(stream, "before");
}

}  // namespace
}  // namespace pando::local
