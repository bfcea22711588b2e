// Every limit of the protocol between nodes (proto/pando/v1/peer.proto), that is of messages and
// calls; those of prompts, pages and grants are in node/core/limits.h. An error that names one says
// what was found, what is allowed and what to do.
#ifndef PANDO_NODE_CORE_CLUSTER_LIMITS_H_
#define PANDO_NODE_CORE_CLUSTER_LIMITS_H_

#include <cstdint>

#include "radix/base/ids.h"

namespace pando::limits {

inline constexpr uint32_t kPeers = 256;  // that one node may be told of

// ---- Messages
inline constexpr uint64_t kPeerMessageBytes = 16ull << 20;
inline constexpr uint32_t kNodeNameBytes = 64;
inline constexpr uint32_t kDataAddressBytes = 128;
inline constexpr uint32_t kIdentityBytes = 1u << 20;  // of one space
inline constexpr uint32_t kPeerTextBytes = 1024;      // a message or a reason; longer ones are cut
inline constexpr uint32_t kGrantsPerDone = 4096;      // let go, and with bad pages
inline constexpr uint32_t kKeysPerPiece = 1u << 20;   // of a feed, in all four columns
static_assert(uint64_t{kKeysPerPiece} * 8 + kPeerTextBytes < kPeerMessageBytes);

// ---- Calls. A peer that wants more is told so; the others notice nothing.
inline constexpr uint32_t kPeerCalls = 64;           // at once, of all who ask
inline constexpr uint32_t kPeerFeeds = 2 * kPeers;   // at once, of all who ask
inline constexpr uint32_t kPeerConnections = 1024;   // at once, that peers made to this node
inline constexpr uint32_t kCallsPerConnection = 64;  // and feeds
inline constexpr uint32_t kAsksPerPeer = 256;        // at once, of this node
inline constexpr Nanos kPeerCallLife =
    60'000'000'000;  // a call's deadline is at most this far away

}  // namespace pando::limits

#endif  // PANDO_NODE_CORE_CLUSTER_LIMITS_H_
