// FAULTS G2, D4: what a frame is made of, seen before it is parsed.
#include "node/local/frame_form.h"

#include <gtest/gtest.h>

#include <string>

#include "node/core/limits.h"
#include "tests/node/local/raw_engine.h"

namespace pando::local {
namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string Field(uint32_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}

std::string Times(uint64_t count, const std::string& bytes) {
  std::string all;
  for (uint64_t i = 0; i < count; ++i) all += bytes;
  return all;
}

std::string Payload(const v1::ClientFrame& frame) {
  return frame.SerializeAsString();
}

TEST(FrameForm, CutsAFrameIntoItsMessages) {
  v1::ClientFrame frame;
  for (uint64_t serial = 1; serial <= 3; ++serial) {
    *frame.add_messages() = ProbeMessage(serial, 7, 10);
  }
  const std::string payload = "\x50\x01" + Payload(frame);  // after a field that nobody knows
  ASSERT_EQ(CheckForm(payload), FrameForm::kGood);
  size_t at = 0;
  for (const v1::ClientMessage& message : frame.messages()) {
    EXPECT_EQ(NextMessage(payload, &at), message.SerializeAsString());
  }
  EXPECT_EQ(at, payload.size());
  EXPECT_EQ(NextMessage(payload, &at), std::nullopt);
  EXPECT_EQ(CheckForm(""), FrameForm::kGood);
}

TEST(FrameForm, TellsWhatIsNoFrame) {
  const std::string payload = Payload([] {
    v1::ClientFrame frame;
    *frame.add_messages() = ProbeMessage(1, 7, 10);
    return frame;
  }());
  for (size_t bytes = 1; bytes < payload.size(); ++bytes) {
    EXPECT_EQ(CheckForm(payload.substr(0, bytes)), FrameForm::kMalformed) << bytes;
  }
  EXPECT_EQ(CheckForm(std::string(1, '\0')), FrameForm::kMalformed);
  EXPECT_EQ(CheckForm("\x7b\x7c"), FrameForm::kMalformed) << "a group";
}

TEST(FrameForm, CountsMessages) {
  const std::string empty = Field(1, "");
  EXPECT_EQ(CheckForm(Times(limits::kMessagesPerFrame, empty)), FrameForm::kGood);
  EXPECT_EQ(CheckForm(Times(limits::kMessagesPerFrame + 1, empty)), FrameForm::kTooManyMessages);
}

TEST(FrameForm, CountsFieldsHoweverDeepTheyAre) {
  const auto many = [](const std::string& field) {
    return Times(limits::kFieldsPerFrame + 1, field);
  };
  const auto message = [](uint32_t body, const std::string& bytes) {
    return Field(1, Field(body, bytes));
  };
  for (const std::string& payload : {
           message(5, Field(1, many(Field(2, "")))),  // a probe's segments
           message(4, Field(2, many(Field(3, "")))),  // an acquire's extras
           message(3, many(Field(10, ""))),           // an attach's fields
           message(9, many(Field(1, ""))),            // an end's items
           message(9, Field(1, many("\x20\x01"))),    // its bad pages, one by one
           many("\x50\x01"),                          // what nobody knows
       }) {
    EXPECT_EQ(CheckForm(payload), FrameForm::kTooManyFields);
  }
  const std::string most = Times(limits::kFieldsPerFrame - 3, Field(2, ""));
  EXPECT_EQ(CheckForm(message(5, Field(1, most))), FrameForm::kGood);
  const auto packed = [&](uint64_t numbers) {
    return CheckForm(message(10, Field(1, std::string(numbers, '\x01'))));
  };
  EXPECT_EQ(packed(limits::kFieldsPerFrame * 7), FrameForm::kGood) << "packed numbers cost less";
  EXPECT_EQ(packed(limits::kFieldsPerFrame * 8), FrameForm::kTooManyFields);
}

}  // namespace
}  // namespace pando::local
