// What the decoders of the protocol between nodes check fields with: reads them and remembers the
// first thing that is wrong. Nothing is trusted. One thread.
#ifndef PANDO_NODE_CONTROL_FIELD_READER_H_
#define PANDO_NODE_CONTROL_FIELD_READER_H_

#include <google/protobuf/message_lite.h>

#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "node/control/peer_codec.h"
#include "node/core/cluster/limits.h"
#include "node/core/limits.h"
#include "node/core/problem.h"

namespace pando::control {

static_assert(std::endian::native == std::endian::little, "packed columns are little-endian");

// Reads fields and remembers the first thing that is wrong.
class FieldReader {
 public:
  // False: it is none, which is remembered.
  bool Parse(const char* name, std::string_view bytes, google::protobuf::MessageLite* message) {
    if (bytes.size() <= limits::kPeerMessageBytes &&
        message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return true;
    }
    Refuse(Text("found ", bytes.size(), " bytes that are no ", name, " of at most ",
                limits::kPeerMessageBytes, " bytes; send what peer.proto says"));
    return false;
  }
  bool ok() const { return !wrong_; }
  Malformed wrong() const { return {*wrong_}; }

  void Refuse(std::string message) {
    if (!wrong_) wrong_ = std::move(message);
  }
  void Check(const char* field, uint64_t found, uint64_t least, uint64_t most) {
    if (found >= least && found <= most) return;
    Refuse(Text(field, ": found ", found, ", allowed are ", least, " to ", most));
  }
  BootId ReadBoot(const char* field, uint64_t found) {
    if (found == 0) Refuse(Text(field, ": found 0, which no life of a node has; say its boot id"));
    return BootId(found);
  }
  template <class Name>
  GrantId ReadGrant(const char* field, const Name& found) {
    const GrantId grant{found.high(), found.low()};
    if (grant == GrantId{})
      Refuse(Text(field, ": found 0, which no grant has; say the grant's id"));
    return grant;
  }
  Nanos ReadLife(const char* field, uint32_t millis) {
    Check(field, millis, 0, limits::kGrantLife / kNanosPerMilli);
    return millis * kNanosPerMilli;
  }
  PeerCode ReadCode(int found) {
    Check("code", static_cast<uint64_t>(found), 0, static_cast<uint64_t>(PeerCode::kBusy));
    return ok() ? static_cast<PeerCode>(found) : PeerCode::kInvalid;
  }
  template <class T>
  void ReadColumn(const char* field, const std::string& bytes, uint64_t most, std::vector<T>* out) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes.size() % sizeof(T) != 0) {
      return Refuse(Text(field, ": found ", bytes.size(),
                         " bytes, a packed column is a multiple of ", sizeof(T)));
    }
    Check(field, bytes.size() / sizeof(T), 0, most);
    if (!ok()) return;
    // A string keeps its bytes aligned for every T. One copy; resize would write zeros before it.
    const T* values = reinterpret_cast<const T*>(bytes.data());
    out->assign(values, values + bytes.size() / sizeof(T));
  }

 private:
  static constexpr Nanos kNanosPerMilli = 1'000'000;
  std::optional<std::string> wrong_;
};

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_FIELD_READER_H_
