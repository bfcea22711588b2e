#include "node/local/frame_form.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "node/core/limits.h"
#include "pando/v1/client.pb.h"

namespace pando::local {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t kMessageTag = WireFormatLite::MakeTag(v1::ClientFrame::kMessagesFieldNumber,
                                                         WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
// A field takes two bytes at least: a shorter frame cannot have too many.
constexpr size_t kFieldBytesLeast = 2;
// So many bytes of packed numbers cost no more than a field.
constexpr uint64_t kPackedBytesAField = 8;

CodedInputStream StreamOf(std::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

// Groups are no part of the protocol, and could hold anything.
bool Skip(CodedInputStream* in, uint32_t tag) {
  return WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_START_GROUP &&
         WireFormatLite::SkipField(in, tag);
}

// Adds the fields up to the stream's limit, and those of the messages in them, until they are too
// many. False: malformed.
bool CountFields(CodedInputStream* in, const Descriptor* type, uint64_t* fields) {
  while (const uint32_t tag = in->ReadTag()) {
    if (++*fields > limits::kFieldsPerFrame) return true;
    const FieldDescriptor* field = type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool known = field != nullptr && WireFormatLite::GetTagWireType(tag) ==
                                               WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const bool nested = known && field->type() == FieldDescriptor::TYPE_MESSAGE;
    if (!nested && !(known && field->is_packable())) {
      if (!Skip(in, tag)) return false;
      continue;
    }
    int length = 0;
    if (!in->ReadVarintSizeAsInt(&length)) return false;
    if (!nested) {
      *fields += static_cast<uint64_t>(length) / kPackedBytesAField;
      if (!in->Skip(length)) return false;
      continue;
    }
    const CodedInputStream::Limit limit = in->PushLimit(length);
    if (!CountFields(in, field->message_type(), fields)) return false;
    if (*fields > limits::kFieldsPerFrame) return true;
    in->PopLimit(limit);
  }
  return in->ConsumedEntireMessage();
}

}  // namespace

FrameForm CheckForm(std::string_view frame) {
  CodedInputStream in = StreamOf(frame);
  uint64_t messages = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (!Skip(&in, tag)) return FrameForm::kMalformed;
    if (tag == kMessageTag && ++messages > limits::kMessagesPerFrame) {
      return FrameForm::kTooManyMessages;
    }
  }
  if (!in.ConsumedEntireMessage()) return FrameForm::kMalformed;
  if (frame.size() <= limits::kFieldsPerFrame * kFieldBytesLeast) return FrameForm::kGood;
  CodedInputStream again = StreamOf(frame);
  uint64_t fields = 0;
  if (!CountFields(&again, v1::ClientFrame::descriptor(), &fields)) return FrameForm::kMalformed;
  return fields > limits::kFieldsPerFrame ? FrameForm::kTooManyFields : FrameForm::kGood;
}

std::optional<std::string_view> NextMessage(std::string_view frame, size_t* at) {
  CodedInputStream in = StreamOf(frame.substr(*at));
  while (const uint32_t tag = in.ReadTag()) {
    int length = 0;
    if (tag == kMessageTag && in.ReadVarintSizeAsInt(&length)) {
      const size_t begin = *at + static_cast<size_t>(in.CurrentPosition());
      *at = begin + static_cast<size_t>(length);
      return frame.substr(begin, static_cast<size_t>(length));
    }
    Skip(&in, tag);
  }
  *at = frame.size();
  return std::nullopt;
}

}  // namespace pando::local
