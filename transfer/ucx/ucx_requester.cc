// UcxWorker as the requester of pages: asks out, pages and refusals in.
#include "transfer/memory/page_copy.h"
#include "transfer/ucx/ucx_worker.h"

namespace pando::transfer {

void UcxWorker::Pump(Connection* connection) {
  while (std::optional<Ask> ask =
             pulls_.AskNext(connection->id, wire::kEntriesMax, MonotonicNow())) {
    Operation* const operation = NewOperation(OperationKind::kControl, connection);
    wire::Append(wire::AskHeader{.count = static_cast<uint16_t>(ask->pages.size()),
                                 .pull = ask->wire,
                                 .grant_high = ask->grant.high,
                                 .grant_low = ask->grant.low},
                 &operation->header);
    for (const AskedPage& page : ask->pages) {
      wire::Append(wire::AskEntry{page.position, page.index, page.length}, &operation->payload);
    }
    Send(operation, wire::kAskId, UCP_AM_SEND_FLAG_EAGER);
  }
}

ucs_status_t UcxWorker::OnPages(void* self, const void* header, size_t header_bytes, void* data,
                                size_t bytes, const ucp_am_recv_param_t* param) {
  auto* const worker = static_cast<UcxWorker*>(self);
  Connection* const connection = worker->SenderOf(param);
  const bool rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const auto message = wire::ParsePages(wire::RawOf(header, header_bytes), bytes);
  if (connection == nullptr || !message || (rendezvous && message->pages.size() > 1)) {
    ++worker->out_.counters.messages_refused;
    return UCS_OK;  // and so dropped
  }
  wire::Raw rest = rendezvous ? wire::Raw() : wire::RawOf(data, bytes);
  for (const auto& [position, length] : message->pages) {
    const Landing landing = worker->pulls_.Receive(connection->id, message->pull, position, length);
    const bool take = landing.kind == Landing::Kind::kTake;
    if (take) connection->progress = MonotonicNow();
    if (rendezvous) {
      if (!take) return UCS_OK;
      worker->Receive(connection, message->pull, position, landing, data);
      return UCS_INPROGRESS;
    }
    // Its bytes are in UCX's own buffer: one pass copies and hashes them.
    const wire::Raw piece = rest.first(length);
    rest = rest.subspan(length);
    if (!take) continue;
    const bool good = GatherToPage({&piece, 1}, landing.to) == landing.checksum;
    worker->pulls_.Received(message->pull, position,
                            good ? PageOutcome::kArrived : PageOutcome::kBad, connection->progress);
  }
  return UCS_OK;
}

void UcxWorker::Receive(Connection* connection, uint64_t pull, uint32_t position,
                        const Landing& landing, void* descriptor) {
  Operation* const operation = NewOperation(OperationKind::kReceivePage, connection);
  operation->wire = pull;
  operation->position = position;
  operation->checksum = landing.checksum;
  operation->to = landing.to;
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
