#include "tests/fuzz/script.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

namespace pando::fuzz {
namespace {

constexpr std::array<const char*, kKinds> kKindNames = {
    "kTick",    "kExtent",    "kOpen",      "kAttach",      "kAcquire", "kAwait",
    "kProbe",   "kReserve",   "kBegin",     "kEnd",         "kAbort",   "kSettle",
    "kClose",   "kExit",      "kRefused",   "kDrain",       "kPeers",   "kAnswer",
    "kFeed",    "kFeedEnds",  "kPulled",    "kHello",       "kGrant",   "kDone",
    "kGoodbye", "kSubscribe", "kFeedReady", "kUnsubscribe", "kSent",
};

struct NamedField {
  const char* name;
  uint8_t Operation::*field;
};
constexpr std::array<NamedField, kOperationBytes - 1> kFields = {{
    {"who", &Operation::who},
    {"which", &Operation::which},
    {"request", &Operation::request},
    {"prompt", &Operation::prompt},
    {"tokens", &Operation::tokens},
    {"form", &Operation::form},
    {"from", &Operation::from},
    {"to", &Operation::to},
    {"time", &Operation::time},
    {"odd", &Operation::odd},
    {"more", &Operation::more},
}};

std::string Print(const Operation& operation) {
  std::ostringstream out;
  out << "{.kind = Kind::" << kKindNames[static_cast<size_t>(operation.kind)];
  for (const auto& [name, field] : kFields) {
    if (operation.*field != 0) out << ", ." << name << " = " << +(operation.*field);
  }
  out << "}";
  return std::move(out).str();
}

}  // namespace

Script DecodeScript(std::span<const uint8_t> bytes, bool peers) {
  Script script;
  script.peers = peers;
  if (bytes.size() < sizeof(Start)) return script;
  std::memcpy(&script.start, bytes.data(), sizeof(Start));
  bytes = bytes.subspan(sizeof(Start));
  const size_t count = std::min(bytes.size() / kOperationBytes, kOperationsMax);
  script.operations.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Operation& operation = script.operations[i];
    uint8_t kind = bytes[i * kOperationBytes];
    kind %= peers ? kKinds : kEngineKinds;
    operation.kind = static_cast<Kind>(kind);
    for (size_t field = 0; field < kFields.size(); ++field) {
      operation.*kFields[field].field = bytes[i * kOperationBytes + 1 + field];
    }
  }
  return script;
}

std::vector<uint8_t> EncodeScript(const Script& script) {
  std::vector<uint8_t> bytes(sizeof(Start));
  std::memcpy(bytes.data(), &script.start, sizeof(Start));
  for (const Operation& operation : script.operations) {
    bytes.push_back(static_cast<uint8_t>(operation.kind));
    for (const auto& [name, field] : kFields) bytes.push_back(operation.*field);
  }
  return bytes;
}

std::string PrintCase(const Script& script, std::string_view name) {
  const Start& start = script.start;
  std::ostringstream out;
  out << "TEST(FuzzFound, " << name << ") {\n"
      << "  const Script script = {\n"
      << "      .peers = " << (script.peers ? "true" : "false") << ",\n"
      << "      .start = {.extents = " << +start.extents
      << ", .extent_pages = " << +start.extent_pages << ", .share = " << +start.share
      << ", .collide = " << +start.collide << "},\n"
      << "      .operations = {\n";
  for (const Operation& operation : script.operations) {
    out << "          " << Print(operation) << ",\n";
  }
  out << "      }};\n"
      << "  EXPECT_EQ(RunScript(script), \"\");\n"
      << "}\n";
  return std::move(out).str();
}

}  // namespace pando::fuzz
