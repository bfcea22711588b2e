// What UCX engines say to each other: three active messages, each a packed little-endian header and
// a payload. Version 2. Every field is checked by Parse; nothing is trusted.
//
//   Ask      requester -> owner   AskHeader                     payload: AskEntry[count]
//   Pages    owner -> requester   PagesHeader PageEntry[count]  payload: the pages, in order
//   Refusal  owner -> requester   RefusalHeader                 payload: u32 position[count]
//
// Small pages go several to a message, since each message costs the owner a call of the kernel; up
// to kMessageBytes, since only whole messages are progress: a slow link must not look like a dead
// one. A requester takes any that fit in kPagesMax.
//
// UCX gives headers at any alignment: they are copied out.
#ifndef PANDO_TRANSFER_UCX_WIRE_H_
#define PANDO_TRANSFER_UCX_WIRE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "transfer/offer_table.h"
#include "transfer/pull_table.h"

namespace pando::transfer::wire {

static_assert(std::endian::native == std::endian::little, "the layouts are little-endian");

inline constexpr uint16_t kVersion = 2;
inline constexpr uint32_t kEntriesMax = 64;          // of an Ask or a Refusal
inline constexpr uint32_t kPagesMax = 15;            // of a message: UCX copies what has more parts
inline constexpr size_t kMessageBytes = 512u << 10;  // of pages that go together

enum MessageId : unsigned { kAskId = 1, kPagesId = 2, kRefusalId = 3 };

struct AskHeader {
  uint16_t version = kVersion;
  uint16_t count = 0;  // 1 .. kEntriesMax
  uint32_t zero = 0;
  uint64_t pull = 0;  // random, the requester's
  uint64_t grant_high = 0, grant_low = 0;
};
struct AskEntry {
  uint32_t position = 0, index = 0, length = 0;
};
struct PagesHeader {
  uint16_t version = kVersion;
  uint16_t count = 0;  // 1 .. kPagesMax
  uint32_t zero = 0;
  uint64_t pull = 0;
};
struct PageEntry {
  uint32_t position = 0, length = 0;
};
struct RefusalHeader {
  uint16_t version = kVersion;
  uint8_t reason = 0;  // Refusal, of the first position
  uint8_t zero = 0;
  uint32_t count = 0;  // 1 .. kEntriesMax
  uint64_t pull = 0;
};
static_assert(sizeof(AskHeader) == 32 && sizeof(AskEntry) == 12);
static_assert(sizeof(PagesHeader) == 16 && sizeof(PageEntry) == 8 && sizeof(RefusalHeader) == 16);

using Raw = std::span<const std::byte>;

inline Raw RawOf(const void* start, size_t bytes) {
  return {static_cast<const std::byte*>(start), bytes};
}

template <class T>
void Append(const T& value, std::vector<std::byte>* bytes) {
  const auto more = std::as_bytes(std::span(&value, 1));
  bytes->insert(bytes->end(), more.begin(), more.end());
}

template <class T>
std::optional<T> CopyOut(Raw bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

inline std::optional<Ask> ParseAsk(Raw header_bytes, Raw payload) {
  const auto header = CopyOut<AskHeader>(header_bytes);
  if (!header || header->version != kVersion || header->zero != 0 || header->count == 0 ||
      header->count > kEntriesMax || payload.size() != header->count * sizeof(AskEntry)) {
    return std::nullopt;
  }
  Ask ask{header->pull, {header->grant_high, header->grant_low}, {}};
  ask.pages.reserve(header->count);
  for (size_t i = 0; i < header->count; ++i) {
    const auto entry = CopyOut<AskEntry>(payload.subspan(i * sizeof(AskEntry), sizeof(AskEntry)));
    ask.pages.push_back({entry->position, entry->index, entry->length});
  }
  return ask;
}

struct Pages {
  uint64_t pull = 0;
  std::vector<PageEntry> pages;  // their lengths sum to the payload's
};
inline std::optional<Pages> ParsePages(Raw header_bytes, size_t payload_bytes) {
  if (header_bytes.size() < sizeof(PagesHeader)) return std::nullopt;
  const auto header = CopyOut<PagesHeader>(header_bytes.first(sizeof(PagesHeader)));
  const Raw entries = header_bytes.subspan(sizeof(PagesHeader));
  if (header->version != kVersion || header->zero != 0 || header->count == 0 ||
      header->count > kPagesMax || entries.size() != header->count * sizeof(PageEntry)) {
    return std::nullopt;
  }
  Pages pages{header->pull, std::vector<PageEntry>(header->count)};
  std::memcpy(pages.pages.data(), entries.data(), entries.size());
  size_t sum = 0;
  for (const PageEntry& page : pages.pages) {
    if (page.length == 0 || page.length > kPageBytesMax) return std::nullopt;
    sum += page.length;
  }
  return sum == payload_bytes ? std::optional(std::move(pages)) : std::nullopt;
}

struct Refused {
  uint64_t pull = 0;
  std::vector<uint32_t> positions;
};
inline std::optional<Refused> ParseRefusal(Raw header_bytes, Raw payload) {
  const auto header = CopyOut<RefusalHeader>(header_bytes);
  if (!header || header->version != kVersion || header->zero != 0 || header->reason == 0 ||
      header->reason > kRefusals || header->count == 0 || header->count > kEntriesMax ||
      payload.size() != header->count * sizeof(uint32_t)) {
    return std::nullopt;
  }
  Refused refused{header->pull, std::vector<uint32_t>(header->count)};
  std::memcpy(refused.positions.data(), payload.data(), payload.size());
  return refused;
}

}  // namespace pando::transfer::wire

#endif  // PANDO_TRANSFER_UCX_WIRE_H_
