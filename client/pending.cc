#include "client/pending.h"

namespace pando::client {

bool Fail(Pending* pending, Code code, const std::string& message) {
  pending->waited = false;
  return std::visit(
      [&](auto& call) {
        if constexpr (requires { call.slot; }) {
          const auto slot = call.slot.lock();
          if (!slot || slot->ready) return false;
          slot->result.code = code;
          slot->result.message = message;
          slot->ready = true;
          return true;
        }
        return false;
      },
      pending->call);
}

}  // namespace pando::client
