// UcxWorker: operations of UCX, from their start until their callback.
#include "radix/base/check.h"
#include "transfer/memory/page_copy.h"
#include "transfer/ucx/ucx_worker.h"

namespace pando::transfer {

UcxWorker::Operation* UcxWorker::NewOperation(OperationKind kind, Connection* connection) {
  Operation* operation = nullptr;
  if (free_operations_.empty()) {
    operation = new Operation;
  } else {
    operation = free_operations_.back();
    free_operations_.pop_back();
  }
  operation->kind = kind;
  operation->connection = connection;
  operation->header.clear();
  operation->payload.clear();
  operation->pages.clear();
  ++connection->operations;
  return operation;
}

void UcxWorker::Send(Operation* operation, unsigned id, uint32_t flags) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.cb.send = &OnSent;
  params.user_data = operation;
  params.flags = flags | UCP_AM_SEND_FLAG_REPLY;  // the receiver learns which connection it is
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  const void* payload = operation->payload.data();
  size_t count = operation->payload.size();
  if (operation->pages.size() == 1) {
    payload = operation->pages[0].buffer;
    count = operation->pages[0].length;
    params.memh = HandleOf(payload, count);
    if (params.memh != nullptr) params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  } else if (!operation->pages.empty()) {
    payload = operation->pages.data();
    count = operation->pages.size();
    params.datatype = ucp_dt_make_iov();
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
  }
  void* const request =
      ucp_am_send_nbx(operation->connection->endpoint, id, operation->header.data(),
                      operation->header.size(), payload, count, &params);
  if (!UCS_PTR_IS_PTR(request)) Over(operation, UCS_PTR_RAW_STATUS(request));
}

void UcxWorker::OnSent(void* request, ucs_status_t status, void* user_data) {
  auto* const operation = static_cast<Operation*>(user_data);
  ucp_request_free(request);
  operation->connection->worker->Over(operation, status);
}

void UcxWorker::OnReceived(void* request, ucs_status_t status, size_t /*length*/, void* user_data) {
  auto* const operation = static_cast<Operation*>(user_data);
  ucp_request_free(request);
  operation->connection->worker->Over(operation, status);
}

void UcxWorker::Over(Operation* operation, ucs_status_t status) {
  Connection* const connection = operation->connection;
  const Nanos now = MonotonicNow();
  if (status == UCS_OK) connection->progress = now;
  switch (operation->kind) {
    case OperationKind::kControl:
      break;
    case OperationKind::kSendPages:
      for (const ucp_dt_iov_t& page : operation->pages) {
        --connection->sending;
        offers_.Sent(operation->grant, page.length, status == UCS_OK);
      }
      break;
    case OperationKind::kReceivePage:
      pulls_.Received(operation->wire, operation->position,
                      status != UCS_OK                                     ? PageOutcome::kFailed
                      : PageChecksum(operation->to) == operation->checksum ? PageOutcome::kArrived
                                                                           : PageOutcome::kBad,
                      now);
      break;
  }
  // A control message that could not be sent would leave its pages without an answer.
  if (status != UCS_OK) connection->failed = true;
  PANDO_CHECK(connection->operations > 0) << "an operation ended twice";
  --connection->operations;
  free_operations_.push_back(operation);
}

}  // namespace pando::transfer
