// The reference: the shortest two-process UCX program that moves and hashes the same pages. It
// spins while a lot runs, checks nothing that a peer says, and survives no failure.
#include <ucp/api/ucp.h>

#include <cstdlib>
#include <cstring>

#include "tests/bench/pull_bench_peer.h"
#include "transfer/memory/page_copy.h"
#include "transfer/ucx/listen_address.h"

namespace pando::bench {
namespace {

struct Request {
  uint32_t slot, position, rendezvous, page_bytes;
};

struct Worker {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_ep_h endpoint = nullptr;
  std::span<std::byte> pool;
  const Lot* lot = nullptr;
  uint32_t served = 0, arrived = 0, wrong = 0;
  bool over = false;  // the owner's: the requester has all it wanted

  Worker() {
    setenv("UCX_TCP_TX_SEG_SIZE", "2112k", 0);  // as the engine
    setenv("UCX_TCP_RX_SEG_SIZE", "2112k", 0);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    ucp_worker_params_t worker_params{};
    if (ucp_init(&params, nullptr, &context) != UCS_OK ||
        ucp_worker_create(context, &worker_params, &worker) != UCS_OK) {
      std::abort();
    }
  }
  void Handle(unsigned id, ucp_am_recv_callback_t handler) {
    ucp_am_handler_param_t params{};
    params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                        UCP_AM_HANDLER_PARAM_FIELD_ARG;
    params.id = id;
    params.cb = handler;
    params.arg = this;
    ucp_worker_set_am_recv_handler(worker, &params);
  }
  void Connect(ucp_ep_params_t params) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    if (ucp_ep_create(worker, &params, &endpoint) != UCS_OK) std::abort();
  }
  static void Free(void* request, ucs_status_t, void*) { ucp_request_free(request); }
  void Send(unsigned id, const void* header, size_t size, std::span<const std::byte> page,
            unsigned flags) {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS;
    params.cb.send = &Free;
    params.flags = flags;
    ucp_am_send_nbx(endpoint, id, header, size, page.data(), page.size(), &params);
  }
};

// The owner. Headers live until their sends are over: a lot's are kept.
Request served_headers[kPulled];
ucs_status_t OnRequest(void* self, const void* header, size_t, void*, size_t,
                       const ucp_am_recv_param_t*) {
  auto* const worker = static_cast<Worker*>(self);
  Request& request = served_headers[worker->served++];
  std::memcpy(&request, header, sizeof(request));
  worker->Send(2, &request, sizeof(request),
               worker->pool.subspan(size_t{request.slot} * request.page_bytes, request.page_bytes),
               request.rendezvous != 0 ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
  return UCS_OK;
}

ucs_status_t OnOver(void* self, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*) {
  static_cast<Worker*>(self)->over = true;
  return UCS_OK;
}

// The requester.
Request asked[kPulled];
void Done(Worker* worker, uint32_t position) {
  const Lot& lot = *worker->lot;
  const auto page = worker->pool.subspan(lot.to[position] * lot.page_bytes, lot.page_bytes);
  worker->wrong += PageChecksum(page) != lot.checksums[position];
  ++worker->arrived;
}
Worker* receiving = nullptr;
void OnReceived(void* request, ucs_status_t, size_t, void* position) {
  ucp_request_free(request);
  Done(receiving, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(position)));
}
ucs_status_t OnPage(void* self, const void* header, size_t, void* data, size_t bytes,
                    const ucp_am_recv_param_t* param) {
  auto* const worker = static_cast<Worker*>(self);
  Request request;
  std::memcpy(&request, header, sizeof(request));
  std::byte* const to = worker->pool.data() + worker->lot->to[request.position] * bytes;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    std::memcpy(to, data, bytes);
    Done(worker, request.position);
    return UCS_OK;
  }
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = &OnReceived;
  params.user_data = reinterpret_cast<void*>(uintptr_t{request.position});
  receiving = worker;
  if (ucp_am_recv_data_nbx(worker->worker, data, to, bytes, &params) == nullptr) {
    Done(worker, request.position);
  }
  return UCS_INPROGRESS;
}

}  // namespace

int ServeReference() {
  Worker worker;
  worker.pool = MakePool(true);
  worker.Handle(1, &OnRequest);
  worker.Handle(3, &OnOver);
  const auto at = transfer::ParseAddress("127.0.0.1:0");
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&at->storage), at->size};
  ucp_conn_request_h caller = nullptr;
  params.conn_handler = {.cb = [](ucp_conn_request_h request,
                                  void* to) { *static_cast<ucp_conn_request_h*>(to) = request; },
                         .arg = &caller};
  ucp_listener_h listener = nullptr;
  if (ucp_listener_create(worker.worker, &params, &listener) != UCS_OK) return 1;
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  ucp_listener_query(listener, &attributes);
  Say(transfer::FormatAddress(attributes.sockaddr));
  unsigned seed = 0;
  for (size_t page_bytes = 0; NextLot(&seed, &page_bytes);) {
    Say("ok");
    worker.served = 0;
    for (worker.over = false; !worker.over;) {
      ucp_worker_progress(worker.worker);
      if (worker.endpoint == nullptr && caller != nullptr) {
        ucp_ep_params_t ep{};
        ep.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        ep.conn_request = caller;
        worker.Connect(ep);
      }
    }
    Say("done");
  }
  return 0;
}

struct Reference::State : Worker {};

Reference::Reference(const std::string& address) : state_(new State) {
  state_->Handle(2, &OnPage);
  const auto to = transfer::ParseAddress(address);
  ucp_ep_params_t ep{};
  ep.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  ep.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  ep.sockaddr = {reinterpret_cast<const sockaddr*>(&to->storage), to->size};
  state_->Connect(ep);
}

double Reference::Pull(const Lot& lot, std::span<std::byte> pool, bool rendezvous) {
  state_->lot = &lot;
  state_->pool = pool;
  state_->arrived = 0;
  const double start = Seconds();
  for (uint32_t next = 0; state_->arrived < kPulled;) {
    while (next < kPulled && next - state_->arrived < kInFlight) {
      asked[next] = {lot.from[next], next, rendezvous, static_cast<uint32_t>(lot.page_bytes)};
      state_->Send(1, &asked[next], sizeof(Request), {}, UCP_AM_SEND_FLAG_EAGER);
      ++next;
    }
    ucp_worker_progress(state_->worker);
  }
  const double took = Seconds() - start;
  ucp_request_param_t params{};
  void* const over = ucp_am_send_nbx(state_->endpoint, 3, nullptr, 0, nullptr, 0, &params);
  while (UCS_PTR_IS_PTR(over) && ucp_request_check_status(over) == UCS_INPROGRESS) {
    ucp_worker_progress(state_->worker);
  }
  if (UCS_PTR_IS_PTR(over)) ucp_request_free(over);
  if (state_->wrong != 0) std::abort();
  return took;
}

}  // namespace pando::bench
