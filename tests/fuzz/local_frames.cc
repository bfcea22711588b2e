// A session's stream, in fragments, as SessionServer takes it: frames, their form, messages, the
// step, and the answers' frame, which is read again.
//
// input = {fragment size - 1: u8, whether frames are paused: u8} + the stream
#include <string>
#include <string_view>
#include <vector>

#include "node/local/codec.h"
#include "node/local/frame.h"
#include "node/local/frame_form.h"
#include "pando/v1/client.pb.h"
#include "radix/base/check.h"
#include "tests/fuzz/core_watch.h"
#include "tests/fuzz/targets.h"

namespace pando::fuzz {
namespace {

using local::FrameReader;

// The frames of a stream that comes in fragments.
std::vector<std::string> Cut(std::string_view stream, size_t fragment, bool pause) {
  std::vector<std::string> frames;
  FrameReader reader;
  std::string_view frame;
  for (size_t at = 0; at < stream.size(); at += fragment) {
    reader.Feed(stream.substr(at, fragment));
    FrameReader::Result result = reader.Next(&frame);
    while (result == FrameReader::Result::kFrame) {
      frames.emplace_back(frame);
      if (pause) {
        reader.Pause(/*again=*/true);
        PANDO_CHECK(reader.Next(&frame) == FrameReader::Result::kFrame && frame == frames.back())
            << "a frame that was paused has changed";
        reader.Pause(/*again=*/false);
      }
      result = reader.Next(&frame);
    }
    if (result == FrameReader::Result::kTooLong) break;
    PANDO_CHECK(reader.pending() <= stream.size()) << "more is kept than came";
  }
  return frames;
}

class Conversation {
 public:
  Conversation() : watch_({.extents = 1, .extent_pages = 16}) {
    watch_.on_output = [this](Output& output) {
      auto* send = std::get_if<SendAnswer>(&output);
      if (send == nullptr) return;
      ++answered_;
      local::EncodeAnswer(send->serial, send->answer, frame_.add_messages());
    };
    watch_.Step(SessionOpened{kSession});
  }

  // False: the session has ended.
  bool Take(const std::string& bytes) {
    v1::ClientFrame whole;
    const bool parses = whole.ParseFromString(bytes);
    if (local::CheckForm(bytes) != local::FrameForm::kGood) return false;
    frame_.Clear();
    int messages = 0;
    size_t at = 0;
    while (const auto message = local::NextMessage(bytes, &at)) {
      ++messages;
      v1::ClientMessage parsed;
      if (!parsed.ParseFromArray(message->data(), static_cast<int>(message->size()))) {
        PANDO_CHECK(!parses) << "a frame parses, and a message of it does not";
        return false;
      }
      Take(parsed);
    }
    PANDO_CHECK(parses && whole.messages_size() == messages)
        << messages << " messages found, " << whole.messages_size() << " are in the frame";
    Answer();
    return true;
  }

  void End() {
    watch_.Advance(Nanos{1} << 42);
    PANDO_CHECK(answered_ == asked_) << asked_ << " messages, " << answered_ << " answers";
    watch_.Step(SessionClosed{kSession});
    watch_.Step(ProcessExited{kSession});
    watch_.ExpectBase();
    PANDO_CHECK(watch_.trouble().empty()) << watch_.trouble();
  }

 private:
  static constexpr SessionId kSession{1};

  void Take(const v1::ClientMessage& message) {
    const auto deadline = local::DecodeDeadline(message.deadline_ns());
    RequestBody body;
    const std::optional<pando::Answer> refusal = local::DecodeRequest(message, &body);
    if (!deadline || refusal) {
      if (refusal) local::EncodeAnswer(message.serial(), *refusal, frame_.add_messages());
      return watch_.Step(RefusedOutside{RefusedOutside::What::kMessageMalformed});
    }
    if (auto* attach = std::get_if<AttachRequest>(&body)) {
      attach->has_pidfd = true;
      attach->process = 1;
    }
    ++asked_;
    watch_.Step(SessionRequest{kSession, message.serial(), *deadline, std::move(body)});
  }

  void Answer() {
    std::string sent;
    PANDO_CHECK(local::AppendFrame(frame_, &sent)) << "an answer to a short frame is too long";
    const std::vector<std::string> got = Cut(sent, sent.size(), false);
    v1::NodeFrame again;
    PANDO_CHECK(got.size() == 1 && again.ParseFromString(got.front()) &&
                again.messages_size() == frame_.messages_size())
        << "the answers' frame cannot be read";
  }

  CoreWatch watch_;
  v1::NodeFrame frame_;
  uint64_t asked_ = 0, answered_ = 0;
};

}  // namespace

void LocalFrames(Input input) {
  if (input.size() < 2) return;
  local::QuietParser();
  const std::string_view stream(reinterpret_cast<const char*>(input.data() + 2), input.size() - 2);
  const std::vector<std::string> frames = Cut(stream, stream.size() + 1, false);
  PANDO_CHECK(frames == Cut(stream, size_t{input[0]} + 1, input[1] % 2 == 1))
      << "other frames from fragments than from the whole stream";
  Conversation conversation;
  for (const std::string& frame : frames) {
    if (!conversation.Take(frame)) break;
  }
  conversation.End();
}

}  // namespace pando::fuzz
