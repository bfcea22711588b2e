#include <algorithm>

#include "node/control/field_reader.h"
#include "node/control/peer_codec.h"
#include "pando/v1/peer.pb.h"

namespace pando::control {
namespace {

void ReadPiece(FieldReader* reader, const v1::FeedMessage& in, FeedPiece* out) {
  out->boot = reader->ReadBoot("boot_id", in.boot_id());
  out->sequence = in.sequence();
  out->part = in.part();
  out->last = in.last();
  if (in.last() && in.part() == 0) {
    reader->Refuse(
        "last: found true with part 0, a delta; only a part of a snapshot can be the last");
  }
  reader->ReadColumn("removes", in.removes(), limits::kKeysPerPiece, &out->removes);
  reader->ReadColumn("adds", in.adds(), limits::kKeysPerPiece, &out->adds);
  reader->ReadColumn("prefill_removes", in.prefill_removes(), limits::kKeysPerPiece,
                     &out->prefill_removes);
  reader->ReadColumn("prefill_adds", in.prefill_adds(), limits::kKeysPerPiece, &out->prefill_adds);
  reader->Check("keys of a message", out->keys(), 0, limits::kKeysPerPiece);
  out->held = {in.digest(), in.blocks()};
  out->prefilling = {in.prefill_digest(), in.prefill_blocks()};
}

NodeTotals Totals(const v1::NodeCounters& in) {
  NodeTotals out;
  out.account.requests = in.requests();
  out.account.prompt = in.prompt();
  out.account.hit_engine = in.hit_engine();
  out.account.hit_device = in.hit_device();
  out.account.hit_host = in.hit_host();
  out.account.hit_disk = in.hit_disk();
  out.account.hit_peer = in.hit_peer();
  out.account.computed = in.computed();
  out.account.failed = in.failed();
  out.pages = in.pages();
  out.pages_free = in.pages_free();
  out.blocks = in.blocks();
  out.uptime_ms = in.uptime_ms();
  return out;
}

// Nothing but counters.
bool HasNoPiece(const v1::FeedMessage& in) {
  return in.boot_id() == 0 && in.sequence() == 0 && in.part() == 0 && !in.last() &&
         in.removes().empty() && in.adds().empty() && in.prefill_removes().empty() &&
         in.prefill_adds().empty() && in.has_counters();
}

}  // namespace

std::variant<FeedRequest, Malformed> DecodeFeedRequest(std::string_view bytes) {
  v1::FeedRequest message;
  FieldReader reader;
  FeedRequest out;
  if (reader.Parse("FeedRequest", bytes, &message)) {
    out.requester = reader.ReadBoot("requester_boot_id", message.requester_boot_id());
    out.boot = BootId(message.boot_id());
    out.sequence = message.sequence();
  }
  if (!reader.ok()) return reader.wrong();
  return out;
}

std::variant<FeedNews, Malformed> DecodeFeed(std::string_view bytes) {
  v1::FeedMessage message;
  FieldReader reader;
  FeedNews out;
  if (reader.Parse("FeedMessage", bytes, &message)) {
    if (!HasNoPiece(message)) ReadPiece(&reader, message, &out.piece.emplace());
    if (message.has_counters()) out.totals = Totals(message.counters());
  }
  if (!reader.ok()) return reader.wrong();
  return out;
}

}  // namespace pando::control
