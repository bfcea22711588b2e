// Every limit of the local protocol, in one place. An error that names one says what was found,
// what is allowed and what to do.
#ifndef PANDO_NODE_CORE_LIMITS_H_
#define PANDO_NODE_CORE_LIMITS_H_

#include <cstdint>

#include "radix/base/ids.h"

namespace pando::limits {

inline constexpr uint32_t kProtocolVersion = 0;  // of the local protocol; changes until 1 is frozen
inline constexpr uint32_t kChecksumFormula = 1;  // XXH3-64 over the XXH3-64 of each 4 KiB chunk
inline constexpr uint32_t kHashFormula = 1;      // of block keys (radix/key/block_key.h)
inline constexpr uint64_t kFrameBytes = 8ull << 20;
inline constexpr uint32_t kMessagesPerFrame = 1024;
// Of all messages in it, those of the messages in them included: what a frame of 8 MiB may be made
// of, lest parsing takes a second and half a gigabyte.
inline constexpr uint64_t kFieldsPerFrame = 1ull << 18;
inline constexpr uint32_t kFdsPerMessage = 253;  // the kernel's SCM_MAX_FD
inline constexpr uint32_t kSessions = 1024;      // of one node
inline constexpr uint32_t kSpaces = 64;          // of one node
inline constexpr uint32_t kShards = 64;          // of one replica
inline constexpr uint64_t kTokensPerPrompt = 1ull << 20;
inline constexpr uint32_t kBlockTokens = 4096;
inline constexpr uint64_t kPageBytes = 8ull << 20;
inline constexpr uint32_t kSegments = 64;      // of one prompt
inline constexpr uint32_t kScopeBytes = 256;   // of one scope's name
inline constexpr uint32_t kExtraBytes = 4096;  // of one block
inline constexpr uint32_t kFieldsPerSpace = 128;
inline constexpr uint32_t kFieldBytes = 4096;  // name and value together
inline constexpr uint32_t kReplicaKeyBytes = 256;
inline constexpr uint32_t kClaimsPerMessage = 1024;
// Of one shard, in one claim and in all that one Begin names: at 16 bytes a page, an answer fits
// into a frame.
inline constexpr uint32_t kPagesPerBegin = 400'000;
static_assert(uint64_t{kPagesPerBegin} * 16 + uint64_t{kClaimsPerMessage} * 512 < kFrameBytes);
// Of all holds of one replica: what the node keeps for them, and gives back in one step when its
// process dies, is 16 bytes each.
inline constexpr uint64_t kPagesHeldPerReplica = 1ull << 24;
inline constexpr uint32_t kClaimsPerReplica = 8192;
inline constexpr uint32_t kRequestsPerReplica = 8192;           // open at once
inline constexpr uint64_t kOpenBytesPerReplica = 256ull << 20;  // OwnedPrompt::bytes of all of them
inline constexpr uint64_t kOpenBytes = 1ull << 30;              // of all replicas together
inline constexpr Nanos kClaimLife = 600'000'000'000;  // a claim's deadline is at most this far away
inline constexpr Nanos kClaimLifeDefault = 30'000'000'000;
// How long a replica is believed to be computing when it has given no rate.
inline constexpr Nanos kPrefillLifeDefault = 30'000'000'000;
inline constexpr Nanos kPrefillLifeMin = 100'000'000;
inline constexpr uint64_t kQuarantineBytesMin = 64ull
                                                << 20;      // cap a replica: the larger of this and
inline constexpr double kQuarantineShare = 0.05;            // this share of the slab
inline constexpr uint64_t kReadBytesPerTurn = 64ull << 10;  // of one session, in the event loop
inline constexpr uint64_t kQueueBytesPerSession = 16ull << 20;  // outgoing; above, it is not read
// Of all sessions: while more is outgoing, a session may have only the last one of it ...
inline constexpr uint64_t kQueueBytes = 256ull << 20;
inline constexpr uint64_t kQueueBytesWhenShort = 256ull << 10;
// ... and when more has come of frames that are not whole, the oldest of them ends its session.
inline constexpr uint64_t kHalfFrameBytes = 256ull << 20;
inline constexpr Nanos kTurn = 1'000'000;  // of one session, between two looks at the others

// ---- Between nodes (proto/pando/v1/peer.proto)

inline constexpr uint32_t kPeerProtocolMin = 0, kPeerProtocolMax = 0;
inline constexpr uint32_t kGuests = 4096;           // nodes that have said hello to this one
inline constexpr uint32_t kFeedsPerGuest = 4;       // streams
inline constexpr uint32_t kGrants = 4096;           // given at once
inline constexpr uint32_t kPagesPerGrant = 16'384;  // 12 bytes each in an answer
inline constexpr uint64_t kGrantPromptBytes = 256ull << 20;  // tokens of all grants
inline constexpr double kGrantShare = 0.25;                  // of the slab's bytes, granted at once
inline constexpr Nanos kGrantLife = 60'000'000'000;
inline constexpr Nanos kGrantLifeDefault = 15'000'000'000;
// Blocks that replicas have announced to compute: more are computed without anybody's waiting for
// them. What is announced goes to peers in one piece of a feed.
inline constexpr uint32_t kBlocksComputing = 1u << 18;
inline constexpr uint32_t kFetches = 1024;        // under way at once
inline constexpr uint32_t kFetchesPerTicket = 2;  // one more, if the first brought too little
inline constexpr uint64_t kTokensToMeasure = 64;  // fewer computed ones say nothing of a rate

}  // namespace pando::limits

#endif  // PANDO_NODE_CORE_LIMITS_H_
