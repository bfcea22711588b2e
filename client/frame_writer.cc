#include "client/frame_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstring>

#include "client/channel.h"
#include "client/limits.h"

namespace pando::client {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

uint32_t Tag(uint32_t field) {
  return WireFormatLite::MakeTag(static_cast<int>(field),
                                 WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Of a length-delimited field with its tag and length.
size_t FieldBytes(uint32_t field, size_t bytes) {
  return CodedOutputStream::VarintSize32(Tag(field)) + CodedOutputStream::VarintSize64(bytes) +
         bytes;
}

}  // namespace

void FrameWriter::Clear() {
  frame_.assign(kFrameHeaderBytes, '\0');
  messages_ = 0;
}

bool FrameWriter::HasRoom(size_t message_bytes) const {
  return messages_ < limits::kMessagesPerFrame &&
         frame_.size() - kFrameHeaderBytes +
                 FieldBytes(pb::ClientFrame::kMessagesFieldNumber, message_bytes) <=
             limits::kFrameBytes;
}

void FrameWriter::PutField(uint32_t field, size_t bytes) {
  uint8_t start[15];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(Tag(field), start);
  end = CodedOutputStream::WriteVarint64ToArray(bytes, end);
  frame_.append(reinterpret_cast<const char*>(start), static_cast<size_t>(end - start));
}

bool FrameWriter::Add(const pb::ClientMessage& message) {
  const size_t bytes = message.ByteSizeLong();
  if (!HasRoom(bytes)) return false;
  PutField(pb::ClientFrame::kMessagesFieldNumber, bytes);
  message.AppendToString(&frame_);
  ++messages_;
  return true;
}

bool FrameWriter::Add(const TokenMessage& message) {
  const size_t token_bytes = message.tokens.size_bytes();
  const size_t tokens_field = token_bytes == 0 ? 0 : FieldBytes(message.tokens_field, token_bytes);
  size_t body_bytes = message.body->ByteSizeLong();
  size_t prompt_bytes = 0;
  if (message.prompt != nullptr) {
    prompt_bytes = message.prompt->ByteSizeLong() + tokens_field;
    body_bytes += FieldBytes(message.prompt_field, prompt_bytes);
  } else {
    body_bytes += tokens_field;
  }
  const size_t bytes = message.head->ByteSizeLong() + FieldBytes(message.body_field, body_bytes);
  if (!HasRoom(bytes)) return false;

  PutField(pb::ClientFrame::kMessagesFieldNumber, bytes);
  message.head->AppendToString(&frame_);
  PutField(message.body_field, body_bytes);
  message.body->AppendToString(&frame_);
  if (message.prompt != nullptr) {
    PutField(message.prompt_field, prompt_bytes);
    message.prompt->AppendToString(&frame_);
  }
  if (token_bytes != 0) {
    PutField(message.tokens_field, token_bytes);
    frame_.append(reinterpret_cast<const char*>(message.tokens.data()), token_bytes);
  }
  ++messages_;
  return true;
}

std::string* FrameWriter::Finish() {
  const auto length = static_cast<uint32_t>(frame_.size() - kFrameHeaderBytes);
  std::memcpy(frame_.data(), &length, sizeof(length));
  return &frame_;
}

}  // namespace pando::client
