// UcxWorker: connections, from their making to their last callback.
#include <algorithm>

#include "transfer/ucx/listen_address.h"
#include "transfer/ucx/ucx_worker.h"

namespace pando::transfer {
namespace {

constexpr Nanos kCloseTick = 1'000'000;

}  // namespace

void UcxWorker::OnConnectionRequest(ucp_conn_request_h request, void* self) {
  static_cast<UcxWorker*>(self)->callers_.push_back(request);
}

void UcxWorker::OnError(void* connection, ucp_ep_h /*endpoint*/, ucs_status_t /*status*/) {
  static_cast<Connection*>(connection)->failed = true;  // closed by the turn
}

UcxWorker::Connection* UcxWorker::Connect(ucp_ep_params_t* params, const std::string& peer) {
  auto connection = std::make_unique<Connection>();
  connection->worker = this;
  connection->id = ++next_connection_;
  connection->peer = peer;
  connection->progress = MonotonicNow();
  params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params->err_handler = {.cb = &OnError, .arg = connection.get()};
  if (ucp_ep_create(worker_, params, &connection->endpoint) != UCS_OK) return nullptr;
  ++out_.counters.connections;
  Connection* const made = connection.get();
  by_endpoint_[made->endpoint] = made;
  connections_[made->id] = std::move(connection);
  return made;
}

UcxWorker::Connection* UcxWorker::ConnectionTo(const std::string& address) {
  const auto it = by_peer_.find(address);
  if (it != by_peer_.end() && !it->second->failed) return it->second;
  const std::optional<SocketAddress> to = ParseAddress(address);
  if (!to) return nullptr;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&to->storage), to->size};
  Connection* const connection = Connect(&params, address);
  if (connection != nullptr) by_peer_[address] = connection;
  return connection;
}

void UcxWorker::Accept(ucp_conn_request_h request) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  if (Connect(&params, "") != nullptr) ++accepted_;
}

UcxWorker::Connection* UcxWorker::SenderOf(const ucp_am_recv_param_t* param) {
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return nullptr;
  const auto it = by_endpoint_.find(param->reply_ep);
  if (it == by_endpoint_.end() || it->second->failed) return nullptr;
  it->second->heard = true;
  return it->second;
}

bool UcxWorker::Busy(const Connection& connection) const {
  return connection.operations > 0 || pulls_.UnderWay(connection.id) > 0;
}

void UcxWorker::BeginClose(Connection* connection) {
  connection->closing = true;
  ++out_.counters.connections_closed;
  const auto peer = by_peer_.find(connection->peer);
  if (peer != by_peer_.end() && peer->second == connection) by_peer_.erase(peer);
  // Pages being received keep their outcome until their callbacks come.
  pulls_.EndConnection(connection->id, PullStatus::kUnreachable);
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const request = ucp_ep_close_nbx(connection->endpoint, &params);
  if (UCS_PTR_IS_PTR(request)) connection->close_request = request;
}

bool UcxWorker::IsGone(Connection* connection) {
  if (connection->close_request != nullptr) {
    if (ucp_request_check_status(connection->close_request) == UCS_INPROGRESS) return false;
    ucp_request_free(std::exchange(connection->close_request, nullptr));
  }
  return connection->operations == 0;
}

std::optional<Nanos> UcxWorker::CloseFailedAndStalled() {
  const Nanos now = MonotonicNow();
  std::optional<Nanos> next;
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection* const connection = it->second.get();
    if (!connection->failed) {
      const Nanos stall = connection->progress + options_.limits.stall_timeout;
      if (!Busy(*connection)) {
        connection->progress = now;
      } else if (stall <= now) {
        connection->failed = true;
        ++out_.counters.connections_stalled;
      } else {
        next = Earlier(next, stall);
      }
    }
    if (connection->failed && !connection->closing) BeginClose(connection);
    if (connection->closing && IsGone(connection)) {
      by_endpoint_.erase(connection->endpoint);
      if (connection->peer.empty()) --accepted_;
      it = connections_.erase(it);
    } else {
      // A close goes on in UCX's progress alone: no event of a socket announces it.
      if (connection->closing) next = Earlier(next, now + kCloseTick);
      ++it;
    }
  }
  return next;
}

}  // namespace pando::transfer
