// The limits of the local protocol (client.proto, version 0) that a client keeps by itself, so that
// it never sends what the node must refuse. An error that names one says what was found, what is
// allowed and what to do.
#ifndef PANDO_CLIENT_LIMITS_H_
#define PANDO_CLIENT_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace pando::client::limits {

inline constexpr uint32_t kProtocolVersion = 0;
inline constexpr uint32_t kChecksumFormula = 1;
inline constexpr size_t kFrameBytes = 8u << 20;  // without the length in front
inline constexpr size_t kMessagesPerFrame = 1024;
inline constexpr size_t kFdsPerMessage = 253;  // the kernel's SCM_MAX_FD
inline constexpr uint32_t kShards = 64;
inline constexpr size_t kTokensPerPrompt = 1u << 20;
inline constexpr uint32_t kBlockTokens = 4096;
inline constexpr uint64_t kPageBytes = 8u << 20;
inline constexpr size_t kSegments = 64;
inline constexpr size_t kScopeBytes = 256;
inline constexpr size_t kExtraBytes = 4096;
inline constexpr size_t kFields = 128;
inline constexpr size_t kFieldBytes = 4096;  // name and value together
inline constexpr size_t kReplicaKeyBytes = 256;
inline constexpr size_t kClaimsPerMessage = 1024;

// Of this client, not of the protocol.
inline constexpr size_t kQueueBytes = 16u
                                      << 20;  // not yet taken by the socket; above, calls are lost
inline constexpr size_t kCallsOutstanding = 16384;  // unanswered; above, calls are lost
inline constexpr int kFramesPerPoll = 256;          // what one Poll reads at most

}  // namespace pando::client::limits

#endif  // PANDO_CLIENT_LIMITS_H_
