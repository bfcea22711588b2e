// UcxWorker as the owner of pages: asks in, pages and refusals out.
#include "transfer/ucx/ucx_worker.h"

namespace pando::transfer {
namespace {

// Messages that wait for one peer to read them, for each page that may be under way to it.
constexpr uint32_t kUnreadPerPage = 4;

}  // namespace

ucs_status_t UcxWorker::OnAsk(void* self, const void* header, size_t header_bytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param) {
  auto* const worker = static_cast<UcxWorker*>(self);
  Connection* const connection = worker->SenderOf(param);
  const bool rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  std::optional<Ask> ask;
  if (connection != nullptr && !rendezvous) {
    ask = wire::ParseAsk(wire::RawOf(header, header_bytes), wire::RawOf(data, bytes));
  }
  if (!ask) {
    ++worker->out_.counters.messages_refused;
    return UCS_OK;
  }
  connection->progress = MonotonicNow();
  worker->asks_.push_back({connection->id, std::move(*ask)});
  return UCS_OK;
}

void UcxWorker::Serve(const Waiting& waiting) {
  const auto it = connections_.find(waiting.connection);
  if (it == connections_.end() || it->second->failed) return;
  Connection* const connection = it->second.get();
  const Ask& ask = waiting.ask;
  std::vector<uint32_t> refused;
  Refusal reason{};
  for (const AskedPage& page : ask.pages) {
    if (connection->sending >= options_.limits.peer_pages_in_flight) {
      ++out_.counters.refused_pages;
      reason = Refusal::kOverloaded;
      refused.push_back(page.position);
      continue;
    }
    const auto taken = offers_.Take(ask.grant, page.index, page.length);
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&taken)) {
      SendPage(connection, ask, page, *bytes);
    } else {
      reason = std::get<Refusal>(taken);
      refused.push_back(page.position);
    }
  }
  if (refused.empty()) return;
  if (connection->operations >= kUnreadPerPage * options_.limits.peer_pages_in_flight) {
    connection->failed = true;
    ++out_.counters.connections_unread;
    return;
  }
  SendRefusals(connection, ask.wire, reason, refused);
}

void UcxWorker::SendPage(Connection* connection, const Ask& ask, const AskedPage& page,
                         std::span<const std::byte> bytes) {
  Operation* const operation = NewOperation(OperationKind::kSendPage, connection);
  ++connection->sending;
  operation->grant = ask.grant;
  operation->bytes = bytes;
  operation->header.page = {.position = page.position, .pull = ask.wire};
  Send(operation, wire::kPageId, &operation->header.page, sizeof(wire::PageHeader), bytes,
       bytes.size() >= rendezvous_from_ ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
}

void UcxWorker::SendRefusals(Connection* connection, uint64_t wire, Refusal reason,
                             std::span<const uint32_t> positions) {
  Operation* const operation = NewOperation(OperationKind::kControl, connection);
  operation->header.refusal = {.reason = static_cast<uint8_t>(reason),
                               .count = static_cast<uint32_t>(positions.size()),
                               .pull = wire};
  const auto bytes = std::as_bytes(positions);
  operation->payload.assign(bytes.begin(), bytes.end());
  Send(operation, wire::kRefusalId, &operation->header.refusal, sizeof(wire::RefusalHeader),
       operation->payload, UCP_AM_SEND_FLAG_EAGER);
}

}  // namespace pando::transfer
