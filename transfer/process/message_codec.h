// transfer/engine.h's values as messages of transfer.proto, and back.
//
// Both sides are of one build: what cannot be decoded (nullopt, false) is a fault of ours, after
// which a side gives up the other. Immutable; any thread.
#ifndef PANDO_TRANSFER_PROCESS_MESSAGE_CODEC_H_
#define PANDO_TRANSFER_PROCESS_MESSAGE_CODEC_H_

#include <optional>
#include <vector>

#include "pando/v1/transfer.pb.h"
#include "transfer/engine.h"
#include "transfer/process/extent_map.h"

namespace pando::transfer {

// Grows with every change of transfer.proto.
inline constexpr uint32_t kProcessVersion = 1;

v1::TransferOpen Encode(const TransferLimits& limits);
TransferLimits LimitsOf(const v1::TransferOpen& open);

void Encode(const GrantId& grant, v1::TransferGrant* out);
GrantId Decode(const v1::TransferGrant& grant);

// Every page lies in one of `extents`.
void Encode(const Offer& offer, const ExtentMap& extents, v1::TransferOffer* out);
std::optional<Offer> Decode(const v1::TransferOffer& offer, const ExtentMap& extents);
void Encode(const Pull& pull, const ExtentMap& extents, v1::TransferPull* out);
std::optional<Pull> Decode(const v1::TransferPull& pull, const ExtentMap& extents);

void Encode(const TransferEvent& event, v1::TransferEvent* out);
std::optional<TransferEvent> Decode(const v1::TransferEvent& event);

void Encode(const TransferCounters& counters, v1::TransferReport* out);
// False, and `counters` as it was: there are none in it.
bool Decode(const v1::TransferReport& report, TransferCounters* counters);

TransferCounters Sum(TransferCounters a, const TransferCounters& b);

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_PROCESS_MESSAGE_CODEC_H_
