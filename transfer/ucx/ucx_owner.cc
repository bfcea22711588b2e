// UcxWorker as the owner of pages: asks in, pages and refusals out.
#include <algorithm>

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
  std::vector<Taken> pages;
  std::vector<uint32_t> refused;
  Refusal reason{};
  for (const AskedPage& page : ask.pages) {
    if (connection->sending + pages.size() >= options_.limits.peer_pages_in_flight) {
      ++out_.counters.refused_pages;
      reason = Refusal::kOverloaded;
      refused.push_back(page.position);
      continue;
    }
    const auto taken = offers_.Take(ask.grant, page.index, page.length);
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&taken)) {
      pages.push_back({page.position, *bytes});
    } else {
      reason = std::get<Refusal>(taken);
      refused.push_back(page.position);
    }
  }
  SendPages(connection, ask, pages);
  if (refused.empty()) return;
  if (connection->operations >= kUnreadPerPage * options_.limits.peer_pages_in_flight) {
    connection->failed = true;
    ++out_.counters.connections_unread;
    return;
  }
  SendRefusals(connection, ask.wire, reason, refused);
}

void UcxWorker::SendPages(Connection* connection, const Ask& ask, std::span<const Taken> pages) {
  while (!pages.empty()) {
    const bool rendezvous = pages[0].bytes.size() >= rendezvous_from_;
    size_t count = 1, bytes = pages[0].bytes.size();
    while (!rendezvous && count < std::min<size_t>(pages.size(), wire::kPagesMax) &&
           bytes + pages[count].bytes.size() <= wire::kMessageBytes) {
      bytes += pages[count++].bytes.size();
    }
    Operation* const operation = NewOperation(OperationKind::kSendPages, connection);
    connection->sending += static_cast<uint32_t>(count);
    operation->grant = ask.grant;
    wire::Append(wire::PagesHeader{.count = static_cast<uint16_t>(count), .pull = ask.wire},
                 &operation->header);
    for (const Taken& page : pages.first(count)) {
      const auto length = static_cast<uint32_t>(page.bytes.size());
      wire::Append(wire::PageEntry{page.position, length}, &operation->header);
      operation->pages.push_back({const_cast<std::byte*>(page.bytes.data()), length});
    }
    Send(operation, wire::kPagesId, rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
    pages = pages.subspan(count);
  }
}

void UcxWorker::SendRefusals(Connection* connection, uint64_t wire, Refusal reason,
                             std::span<const uint32_t> positions) {
  Operation* const operation = NewOperation(OperationKind::kControl, connection);
  wire::Append(wire::RefusalHeader{.reason = static_cast<uint8_t>(reason),
                                   .count = static_cast<uint32_t>(positions.size()),
                                   .pull = wire},
               &operation->header);
  for (const uint32_t position : positions) wire::Append(position, &operation->payload);
  Send(operation, wire::kRefusalId, UCP_AM_SEND_FLAG_EAGER);
}

}  // namespace pando::transfer
