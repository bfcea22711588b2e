// The form of a ClientFrame, seen before anything of it is parsed.
//
//   CheckForm(frame) == kGood ──► while (message = NextMessage(frame, &at)) parse it
//
// A parsed message takes many times the bytes and the time of an empty field in a frame, so what a
// frame is made of is counted first. Stateless; any thread.
#ifndef PANDO_NODE_LOCAL_FRAME_FORM_H_
#define PANDO_NODE_LOCAL_FRAME_FORM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pando::local {

enum class FrameForm : uint8_t {
  kGood,
  kMalformed,        // no ClientFrame
  kTooManyMessages,  // limits::kMessagesPerFrame
  kTooManyFields,    // limits::kFieldsPerFrame
};
FrameForm CheckForm(std::string_view frame);

// The next ClientMessage's bytes, from `*at` on, which is moved behind them; 0 is the first.
// nullopt: there is none. The frame's form is good.
std::optional<std::string_view> NextMessage(std::string_view frame, size_t* at);

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_FRAME_FORM_H_
