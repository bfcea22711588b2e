// UcxWorker as the requester of pages: asks out, pages and refusals in.
#include "transfer/memory/page_copy.h"
#include "transfer/ucx/ucx_worker.h"

namespace pando::transfer {

void UcxWorker::Pump(Connection* connection) {
  while (std::optional<Ask> ask =
             pulls_.AskNext(connection->id, wire::kEntriesMax, MonotonicNow())) {
    Operation* const operation = NewOperation(OperationKind::kControl, connection);
    operation->header.ask = {.count = static_cast<uint16_t>(ask->pages.size()),
                             .pull = ask->wire,
                             .grant_high = ask->grant.high,
                             .grant_low = ask->grant.low};
    std::vector<wire::AskEntry> entries;
    for (const AskedPage& page : ask->pages) {
      entries.push_back({page.position, page.index, page.length});
    }
    const auto bytes = std::as_bytes(std::span(entries));
    operation->payload.assign(bytes.begin(), bytes.end());
    Send(operation, wire::kAskId, &operation->header.ask, sizeof(wire::AskHeader),
         operation->payload, UCP_AM_SEND_FLAG_EAGER);
  }
}

ucs_status_t UcxWorker::OnPage(void* self, const void* header, size_t header_bytes, void* data,
                               size_t bytes, const ucp_am_recv_param_t* param) {
  auto* const worker = static_cast<UcxWorker*>(self);
  Connection* const connection = worker->SenderOf(param);
  const auto page = wire::ParsePage(wire::RawOf(header, header_bytes), bytes);
  if (connection == nullptr || !page) {
    ++worker->out_.counters.messages_refused;
    return UCS_OK;  // and so dropped
  }
  const Landing landing = worker->pulls_.Receive(connection->id, page->pull, page->position, bytes);
  if (landing.kind != Landing::Kind::kTake) return UCS_OK;
  connection->progress = MonotonicNow();
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    worker->Receive(connection, *page, landing, data);
    return UCS_INPROGRESS;
  }
  // Its bytes are in UCX's own buffer: one pass copies and hashes them.
  const std::span<const std::byte> piece = wire::RawOf(data, bytes);
  const std::optional<uint64_t> checksum = GatherToPage({&piece, 1}, landing.to);
  worker->pulls_.Received(page->pull, page->position,
                          checksum == landing.checksum ? PageOutcome::kArrived : PageOutcome::kBad,
                          connection->progress);
  return UCS_OK;
}

void UcxWorker::Receive(Connection* connection, const wire::PageHeader& page,
                        const Landing& landing, void* descriptor) {
  Operation* const operation = NewOperation(OperationKind::kReceivePage, connection);
  operation->wire = page.pull;
  operation->position = page.position;
  operation->checksum = landing.checksum;
  operation->bytes = landing.to;
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.cb.recv_am = &OnReceived;
  params.user_data = operation;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  params.memh = HandleOf(landing.to.data(), landing.to.size());
  if (params.memh != nullptr) params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  void* const request =
      ucp_am_recv_data_nbx(worker_, descriptor, landing.to.data(), landing.to.size(), &params);
  if (!UCS_PTR_IS_PTR(request)) Over(operation, UCS_PTR_RAW_STATUS(request));
}

ucs_status_t UcxWorker::OnRefusal(void* self, const void* header, size_t header_bytes, void* data,
                                  size_t bytes, const ucp_am_recv_param_t* param) {
  auto* const worker = static_cast<UcxWorker*>(self);
  Connection* const connection = worker->SenderOf(param);
  const bool rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  std::optional<wire::Refused> refused;
  if (connection != nullptr && !rendezvous) {
    refused = wire::ParseRefusal(wire::RawOf(header, header_bytes), wire::RawOf(data, bytes));
  }
  if (!refused) {
    ++worker->out_.counters.messages_refused;
    return UCS_OK;
  }
  connection->progress = MonotonicNow();
  worker->pulls_.Refused(connection->id, refused->pull, refused->positions);
  return UCS_OK;
}

}  // namespace pando::transfer
