#include "tests/transfer/raw_peer.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "transfer/ucx/listen_address.h"
#include "transfer/ucx/ucx_defaults.h"
#include "transfer/ucx/wire.h"

namespace pando {
namespace {

template <unsigned kId>
ucs_status_t OnMessage(void* peer, const void* header, size_t header_bytes, void* data,
                       size_t bytes, const ucp_am_recv_param_t* param) {
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto* const head = static_cast<const std::byte*>(header);
  const auto* const body = static_cast<const std::byte*>(data);
  static_cast<RawPeer*>(peer)->got.push_back(
      {kId, {head, head + header_bytes}, {body, body + bytes}, false});
  return UCS_OK;
}

}  // namespace

RawPeer::RawPeer() {
  transfer::SetUcxDefaults();
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM;
  EXPECT_EQ(ucp_init(&params, nullptr, &context_), UCS_OK);
  ucp_worker_params_t worker_params{};
  EXPECT_EQ(ucp_worker_create(context_, &worker_params, &worker_), UCS_OK);
  constexpr std::array<ucp_am_recv_callback_t, 4> kHandlers{
      nullptr, &OnMessage<transfer::wire::kAskId>, &OnMessage<transfer::wire::kPagesId>,
      &OnMessage<transfer::wire::kRefusalId>};
  for (unsigned id = 1; id < kHandlers.size(); ++id) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.cb = kHandlers[id];
    handler.arg = this;
    EXPECT_EQ(ucp_worker_set_am_recv_handler(worker_, &handler), UCS_OK);
  }
  Listen();
}

void RawPeer::Listen() {
  const auto at = transfer::ParseAddress("127.0.0.1:0");
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&at->storage), at->size};
  params.conn_handler = {.cb = [](ucp_conn_request_h request,
                                  void* to) { *static_cast<ucp_conn_request_h*>(to) = request; },
                         .arg = &caller_};
  EXPECT_EQ(ucp_listener_create(worker_, &params, &listener_), UCS_OK);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  EXPECT_EQ(ucp_listener_query(listener_, &attributes), UCS_OK);
  address_ = transfer::FormatAddress(attributes.sockaddr);
}

RawPeer::~RawPeer() {
  if (endpoint_ != nullptr) {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const closing = ucp_ep_close_nbx(endpoint_, &params);
    while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS) {
      ucp_worker_progress(worker_);
    }
    if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
  }
  ucp_listener_destroy(listener_);
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

void RawPeer::Endpoint(ucp_ep_params_t params) {
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  EXPECT_EQ(ucp_ep_create(worker_, &params, &endpoint_), UCS_OK);
}

void RawPeer::Connect(const std::string& address) {
  const auto to = transfer::ParseAddress(address);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&to->storage), to->size};
  Endpoint(params);
}

void RawPeer::Progress() {
  while (ucp_worker_progress(worker_) != 0) {
  }
  if (caller_ == nullptr) return;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = std::exchange(caller_, nullptr);
  Endpoint(params);
}

void RawPeer::Send(RawMessage message) {
  Sending& sending = sending_.emplace_back();
  sending.message = std::move(message);
  sending.peer = this;
  sending.self = std::prev(sending_.end());
  const RawMessage& out = sending.message;
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.cb.send = &OnSent;
  params.user_data = &sending;
  params.flags =
      UCP_AM_SEND_FLAG_REPLY | (out.rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
  void* const request = ucp_am_send_nbx(endpoint_, out.id, out.header.data(), out.header.size(),
                                        out.payload.data(), out.payload.size(), &params);
  if (!UCS_PTR_IS_PTR(request)) sending_.pop_back();
}

void RawPeer::OnSent(void* request, ucs_status_t /*status*/, void* sending) {
  ucp_request_free(request);
  auto* const sent = static_cast<Sending*>(sending);
  sent->peer->sending_.erase(sent->self);
}

}  // namespace pando
