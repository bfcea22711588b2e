// Builds one ClientFrame, message by message, in the bytes that go to the socket.
//
//   [u32 length][messages: [serial, deadline, body: [..., prompt: [..., tokens]]]]...
//
// Small messages are serialized by protobuf. Tokens are copied once, from the engine's array to the
// frame: the lengths of the messages around them are computed first.
#ifndef PANDO_CLIENT_FRAME_WRITER_H_
#define PANDO_CLIENT_FRAME_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pando/v1/client.pb.h"

namespace pando::client {

namespace pb = pando::v1;

// A message with tokens somewhere inside. `prompt` may be null: then the tokens are the body's own.
struct TokenMessage {
  const pb::ClientMessage* head = nullptr;  // serial and deadline
  const google::protobuf::MessageLite* body = nullptr;
  uint32_t body_field = 0;  // in ClientMessage
  const pb::Prompt* prompt = nullptr;
  uint32_t prompt_field = 0;  // in the body
  uint32_t tokens_field = 0;  // in the prompt, or in the body
  std::span<const uint32_t> tokens;
};

class FrameWriter {
 public:
  FrameWriter() { Clear(); }

  // False, and nothing changes, if the frame has no room for it.
  bool Add(const pb::ClientMessage& message);
  bool Add(const TokenMessage& message);

  bool empty() const { return messages_ == 0; }
  size_t bytes() const { return frame_.size(); }
  // The whole frame, its length in front. Clear it afterwards.
  std::string* Finish();
  void Clear();

 private:
  bool HasRoom(size_t message_bytes) const;
  void PutField(uint32_t field, size_t bytes);

  std::string frame_;
  size_t messages_ = 0;
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_FRAME_WRITER_H_
