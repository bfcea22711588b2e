// A peer that speaks raw UCX and lies: headers of random lengths and contents, on every message id.
#ifndef PANDO_TESTS_E2E_TRANSFER_LIAR_H_
#define PANDO_TESTS_E2E_TRANSFER_LIAR_H_

#include <ucp/api/ucp.h>

#include <cstdint>
#include <string>

namespace pando::e2e {

class Liar {
 public:
  explicit Liar(const std::string& address);
  ~Liar();
  Liar(const Liar&) = delete;
  Liar& operator=(const Liar&) = delete;

  bool ok() const { return endpoint_ != nullptr; }
  // Sends one malformed message; false: it did not leave before the deadline.
  bool Lie(unsigned seed, int64_t deadline);

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_TRANSFER_LIAR_H_
