#include "tests/e2e/transfer/liar.h"

#include <random>
#include <vector>

#include "tests/e2e/process/child.h"
#include "transfer/ucx/listen_address.h"

namespace pando::e2e {

Liar::Liar(const std::string& address) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM;
  if (ucp_init(&params, nullptr, &context_) != UCS_OK) return;
  ucp_worker_params_t worker_params{};
  if (ucp_worker_create(context_, &worker_params, &worker_) != UCS_OK) return;
  const auto to = transfer::ParseAddress(address);
  ucp_ep_params_t ep{};
  ep.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  ep.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  ep.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  ep.sockaddr = {reinterpret_cast<const sockaddr*>(&to->storage), to->size};
  if (ucp_ep_create(worker_, &ep, &endpoint_) != UCS_OK) endpoint_ = nullptr;
}

Liar::~Liar() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

bool Liar::Lie(unsigned seed, int64_t deadline) {
  std::mt19937 random(seed);
  std::vector<uint8_t> header(random() % 64), payload(random() % 3000);
  for (uint8_t& byte : header) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random());
  // Half of them nearly right: the version is, and so the checks behind it are reached.
  if (header.size() > 1 && seed % 2 == 0) header[0] = 1, header[1] = 0;
  if (seed % 4 == 0) header.resize(seed % 8 == 0 ? 32 : 16);
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = (seed % 3 == 0 ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER) |
                 (seed % 5 == 0 ? 0u : unsigned{UCP_AM_SEND_FLAG_REPLY});
  void* const request =
      ucp_am_send_nbx(endpoint_, static_cast<unsigned>(1 + random() % 3), header.data(),
                      header.size(), payload.data(), payload.size(), &params);
  if (!UCS_PTR_IS_PTR(request)) return UCS_PTR_RAW_STATUS(request) == UCS_OK;
  while (ucp_request_check_status(request) == UCS_INPROGRESS) {
    if (Now() > deadline) return false;
    ucp_worker_progress(worker_);
  }
  const bool sent = ucp_request_check_status(request) == UCS_OK;
  ucp_request_free(request);
  return sent;
}

}  // namespace pando::e2e
