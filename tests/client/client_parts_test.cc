#include <gtest/gtest.h>

#include "client/frame_writer.h"
#include "client/limits.h"
#include "client/prompt_check.h"

namespace pando::client {
namespace {

TEST(IsUtf8, KnowsTheForms) {
  for (const char* good : {"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8c\xb2", "\xef\xbf\xbf",
                           "\xf4\x8f\xbf\xbf", "x\xc2\x80y"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                          "\xe2\x82", "a\xe2\x28\xa1", "\xf0\x9f\x8c"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(FrameWriter, SaysWhenAFrameIsFullAndStaysAsItWas) {
  FrameWriter writer;
  pb::ClientMessage message;
  message.mutable_attach()->set_credential(std::string(5 << 20, 'c'));
  EXPECT_TRUE(writer.Add(message));
  const size_t bytes = writer.bytes();
  EXPECT_FALSE(writer.Add(message));
  EXPECT_EQ(writer.bytes(), bytes);
  writer.Clear();
  EXPECT_TRUE(writer.empty());
  pb::ClientMessage small;
  small.set_serial(1);
  for (size_t i = 0; i < limits::kMessagesPerFrame; ++i) ASSERT_TRUE(writer.Add(small));
  EXPECT_FALSE(writer.Add(small));
}

}  // namespace
}  // namespace pando::client
