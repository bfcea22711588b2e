// Frames: how a stream of bytes is cut into messages, and back.
//
//   frame = u32 length (little-endian) + that many bytes, at most limits::kFrameBytes
//
//   reader.Feed(bytes);                                  // any fragmentation
//   while (reader.Next(&frame) == FrameReader::Result::kFrame) Handle(frame);
//
// Invariants:
//  1. A frame that lies whole in what was fed is handed out without a copy.
//  2. Between frames the reader keeps no more memory than one small buffer; a length that was only
//     announced costs nothing.
//  3. After kTooLong the stream is out of step for good: the reader says kTooLong for ever.
//
// Threads: one at a time.
#ifndef PANDO_NODE_LOCAL_FRAME_H_
#define PANDO_NODE_LOCAL_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace google::protobuf {
class MessageLite;
}

namespace pando::local {

inline constexpr size_t kFrameHeaderBytes = 4;

class FrameReader {
 public:
  enum class Result : uint8_t { kNeedMore, kFrame, kTooLong };

  // Borrows `bytes` until Next has said kNeedMore; to be called only then.
  void Feed(std::string_view bytes);
  // The next whole frame, without its length; it stays valid until the next call.
  Result Next(std::string_view* frame);
  // Keeps what is left of the fed bytes, so that Next may go on with it at any later time; with
  // `again`, from the last frame on.
  void Pause(bool again);

  // The length that the frame which is too long announced.
  uint64_t announced() const { return announced_; }
  // Bytes that are kept: of a frame whose rest has not come, or of all that is paused.
  size_t pending() const {
    return partial_.size() - (view_.data() == partial_.data() ? position_ : 0);
  }

 private:
  // Moves what is left of the fed bytes to `partial_`.
  void Keep();

  std::string partial_;
  std::string_view view_;  // what is being cut: the fed bytes, or all of `partial_`
  size_t position_ = 0;    // in `view_`
  size_t last_ = 0;        // where the last frame began
  uint64_t announced_ = 0;
  bool broken_ = false;
};

// Appends one frame to `out`. False, and nothing appended, if `message` is longer than a frame may
// be.
bool AppendFrame(const google::protobuf::MessageLite& message, std::string* out);

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_FRAME_H_
