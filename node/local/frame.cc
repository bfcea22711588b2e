#include "node/local/frame.h"

#include <google/protobuf/message_lite.h>

#include <bit>
#include <cstring>

#include "node/core/limits.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

// What a reader keeps allocated between frames; a larger buffer is given back.
constexpr size_t kKeptBytes = 64 << 10;

uint32_t ReadLength(std::string_view bytes) {
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length;
}

}  // namespace

void FrameReader::Feed(std::string_view bytes) {
  if (broken_) return;
  position_ = 0;
  if (partial_.empty()) {
    view_ = bytes;
    return;
  }
  partial_.append(bytes);
  view_ = partial_;
}

FrameReader::Result FrameReader::Next(std::string_view* frame) {
  if (broken_) return Result::kTooLong;
  const std::string_view rest = view_.substr(position_);
  if (rest.size() < kFrameHeaderBytes) {
    Keep();
    return Result::kNeedMore;
  }
  const uint64_t length = ReadLength(rest);
  if (length > limits::kFrameBytes) {
    broken_ = true;
    announced_ = length;
    partial_ = {};
    view_ = {};
    return Result::kTooLong;
  }
  if (rest.size() - kFrameHeaderBytes < length) {
    Keep();
    return Result::kNeedMore;
  }
  last_ = position_;
  *frame = rest.substr(kFrameHeaderBytes, length);
  position_ += kFrameHeaderBytes + length;
  return Result::kFrame;
}

void FrameReader::Pause(bool again) {
  if (again) position_ = last_;
  Keep();
}

void FrameReader::Keep() {
  if (view_.data() == partial_.data()) {
    partial_.erase(0, position_);
  } else {
    partial_.assign(view_.substr(position_));
  }
  if (partial_.empty() && partial_.capacity() > kKeptBytes) partial_ = {};
  view_ = partial_;
  position_ = 0;
}

bool AppendFrame(const google::protobuf::MessageLite& message, std::string* out) {
  const size_t size = message.ByteSizeLong();
  if (size > limits::kFrameBytes) return false;
  const size_t start = out->size();
  out->resize(start + kFrameHeaderBytes + size);
  const auto length = static_cast<uint32_t>(size);
  std::memcpy(out->data() + start, &length, sizeof(length));
  auto* payload = reinterpret_cast<uint8_t*>(out->data() + start + kFrameHeaderBytes);
  const uint8_t* end = message.SerializeWithCachedSizesToArray(payload);
  PANDO_CHECK(end == payload + size) << "a message of " << size << " bytes changed while written";
  return true;
}

}  // namespace pando::local
